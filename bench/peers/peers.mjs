// Speed of dais against ONNX Runtime, in one run on one machine:
//
//   node peers.mjs --specs DIR --models DIR --ort DIR --runners DIR
//       [--threads 1,2] [--starts 2] [--rounds 5] [--seconds 0.2] [--seed TEXT] [--json FILE]
//       [--engines dais,ort] [PATTERN...]
//
// --ort is a folder with node_modules/onnxruntime-node, --runners one with ort_runner and
// dais_runner. PATTERN limits the cases. Exit code: 0, or 1 when a case failed or disagreed.
import fs from 'fs';
import os from 'os';
import path from 'path';
import {setTimeout as sleep} from 'timers/promises';
import {parseArgs} from 'util';
import {drawInputs, readCases} from './cases.mjs';
import {compareOutputs, readOutputs} from './compare.mjs';
import {settle} from './exact.mjs';
import {printCase, printHead, printSummary} from './report.mjs';
import {Runner} from './runner.mjs';
import {encodeTensor} from './tensor_proto.mjs';

// Worker threads of an engine spin for a while after a run; the other one waits until they sleep.
const REST_MS = 20;
const LEAST_RUNS = 3;

function findLibrary(folder) {
  const bin = path.join(folder, 'node_modules/onnxruntime-node/bin');
  for (const abi of fs.existsSync(bin) ? fs.readdirSync(bin) : []) {
    const file = path.join(bin, abi, process.platform, process.arch, 'libonnxruntime.so.1');
    if (fs.existsSync(file)) return file;
  }
  throw new Error(`no libonnxruntime.so.1 under ${bin}; install onnxruntime-node there`);
}

function writeInputs(spec, seed, folder) {
  return drawInputs(spec, seed).map((tensor, i) => {
    const file = path.join(folder, `input_${i}.pb`);
    fs.writeFileSync(file, encodeTensor(tensor));
    return file;
  });
}

// Loads the model in a new process, up to the first outputs.
async function start(engine, spec, context, files) {
  const runner = new Runner(engine, context.commands[engine]);
  try {
    const model = path.resolve(context.models, spec.model);
    const {version, load_ms: loadMs} = await runner.send(`load ${context.threads} ${model}`);
    await runner.setInputs(files);
    await runner.send('run 1 0');
    return {runner, version, loadMs, firstMs: runner.age, rounds: []};
  } catch (error) {
    await runner.quit();
    throw error;
  }
}

// Starts both engines alternately, several times because the first start reads cold files, and
// keeps the last process of each in `turns`.
async function startAll(spec, context, files, turns) {
  const firsts = new Map(context.engines.map((engine) => [engine, []]));
  for (let i = 0; i < context.starts; i++) {
    for (const engine of inTurn(context.engines, i)) {
      await turns.get(engine)?.runner.quit();
      turns.delete(engine);
      turns.set(engine, await start(engine, spec, context, files));
      firsts.get(engine).push(turns.get(engine).firstMs);
      await sleep(REST_MS);
    }
  }
  for (const [engine, turn] of turns) turn.firstMs = Math.min(...firsts.get(engine));
}

function inTurn(list, round) { return round % 2 ? [...list].reverse() : list; }

async function saveOutputs(runner, scratch) {
  const folder = path.join(scratch, runner.name);
  fs.rmSync(folder, {recursive: true, force: true});
  fs.mkdirSync(folder);
  await runner.send(`save ${folder}`);
  return readOutputs(folder);
}

async function agree(turns, spec, context, files, scratch) {
  if (turns.length < 2) return {ok: true, difference: 0, note: ''};
  const outputs = {};
  for (const {runner} of turns) outputs[runner.name] = await saveOutputs(runner, scratch);
  const verdict = compareOutputs(outputs.dais, outputs.ort, spec.kind);
  if (verdict.ok || !Number.isFinite(verdict.difference)) return verdict;
  const {runner} = await start('plain', spec, context, files);
  try {
    const plain = await saveOutputs(runner, scratch);
    const again = compareOutputs(outputs.dais, outputs.ort, spec.kind, plain);
    if (again.ok || spec.kind !== 'quantised' || !fs.existsSync(context.program)) return again;
    const {models, program, threads} = context;
    const theirs = path.join(scratch, 'ort');
    const settled = settle(program, spec, models, threads, files, theirs, scratch);
    return {...again, ok: settled.ok, note: [again.note, settled.note].join('; ')};
  } finally {
    await runner.quit();
  }
}

async function measureRounds(turns, spec, context, firstFiles, scratch) {
  let worst = await agree(turns, spec, context, firstFiles, scratch);
  for (let round = 0; round < context.rounds; round++) {
    const files = writeInputs(spec, `${context.seed}/${round}`, scratch);
    for (const turn of inTurn(turns, round)) {
      await turn.runner.setInputs(files);
      await turn.runner.send('run 1 0');
      turn.rounds.push(await turn.runner.send(`run ${LEAST_RUNS} ${context.seconds}`));
      await sleep(REST_MS);
    }
    const now = await agree(turns, spec, context, files, scratch);
    if (worst.ok && (!now.ok || now.difference > worst.difference)) worst = now;
  }
  return worst;
}

async function measureCase(spec, context) {
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'peers-'));
  const turns = new Map();
  const result = {case: spec.name, kind: spec.kind, threads: context.threads, engines: {}};
  try {
    const files = writeInputs(spec, `${context.seed}/first`, scratch);
    await startAll(spec, context, files, turns);
    result.agreement = await measureRounds(
        [...turns.values()], spec, context, files, scratch);
    for (const {runner, version, loadMs, firstMs, rounds} of turns.values()) {
      result.engines[runner.name] = {
        version, loadMs, firstMs, peakMb: (await runner.send('peak')).peak_mb,
        bestMs: Math.min(...rounds.map((round) => round.median_us)) / 1000,
        medians: rounds.map((round) => round.median_us / 1000),
      };
    }
  } catch (error) {
    result.error = error.message;
  } finally {
    for (const {runner} of turns.values()) await runner.quit();
    fs.rmSync(scratch, {recursive: true, force: true});
  }
  return result;
}

function readOptions() {
  const {values, positionals} = parseArgs({
    allowPositionals: true,
    options: {
      specs: {type: 'string'}, models: {type: 'string'}, ort: {type: 'string'},
      runners: {type: 'string'}, threads: {type: 'string', default: '1,2'},
      starts: {type: 'string', default: '2'}, rounds: {type: 'string', default: '5'},
      seconds: {type: 'string', default: '0.2'},
      seed: {type: 'string', default: String(Date.now())}, json: {type: 'string'},
      engines: {type: 'string', default: 'dais,ort'},
    },
  });
  for (const name of ['specs', 'models', 'ort', 'runners']) {
    if (!values[name]) throw new Error(`--${name} DIR is missing; see the head of peers.mjs`);
  }
  return {...values, patterns: positionals};
}

async function main() {
  const options = readOptions();
  const ortRunner = [path.join(options.runners, 'ort_runner'), findLibrary(options.ort)];
  const context = {
    models: options.models, starts: Number(options.starts), rounds: Number(options.rounds),
    seconds: Number(options.seconds), seed: options.seed, engines: options.engines.split(','),
    program: path.join(options.runners, 'dais'),
    commands: {
      ort: ortRunner,
      plain: [...ortRunner, 'plain'],
      dais: [path.join(options.runners, 'dais_runner')],
    },
  };
  const results = [];
  printHead(context);
  for (const spec of readCases(options.specs, options.patterns)) {
    for (const threads of options.threads.split(',').map(Number)) {
      results.push(await measureCase(spec, {...context, threads}));
      printCase(results.at(-1));
    }
  }
  const summary = printSummary(results);
  if (options.json) {
    const machine = {cpu: os.cpus()[0].model, cores: os.cpus().length, date: new Date()};
    const {seed, rounds, seconds} = context;
    const document = {machine, seed, rounds, seconds, summary, cases: results};
    fs.writeFileSync(options.json, JSON.stringify(document, null, 1) + '\n');
  }
  return results.every(({error, agreement}) => !error && agreement.ok) ? 0 : 1;
}

main().then((code) => process.exit(code), (error) => {
  console.error(`peers.mjs: ${error.message}`);
  process.exit(2);
});
