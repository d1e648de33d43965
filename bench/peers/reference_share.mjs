// How much of each case's time is spent in reference loops, which no model of the list should need:
//
//   node reference_share.mjs --specs DIR --models DIR --runners DIR [--threads 1,2] [PATTERN...]
//
// --runners is a folder with the program `dais`. Prints one line per case and thread count; exit
// code 1 when a share is 1 % or more.
import {spawnSync} from 'child_process';
import fs from 'fs';
import os from 'os';
import path from 'path';
import {parseArgs} from 'util';
import {drawInputs, readCases} from './cases.mjs';
import {encodeTensor} from './tensor_proto.mjs';

const LIMIT = 0.01;

// {share, total, ops}: of the steps' times, and which ops ran on reference loops.
function measure(program, model, inputs, threads) {
  const given = inputs.flatMap(({name, file}) => ['--input', `${name}=${file}`]);
  const args = ['bench', model, ...given, '--threads', String(threads), '--duration', '0.05',
                '--layers', '--json'];
  const result = spawnSync(program, args, {encoding: 'utf8', maxBuffer: 1 << 28});
  if (result.status !== 0) throw new Error(result.stderr.trim());
  const {layers} = JSON.parse(result.stdout);
  const sum = (list) => list.reduce((total, {us}) => total + us, 0);
  const slow = layers.filter(({kernel}) => kernel === 'reference');
  const total = sum(layers);
  return {share: total > 0 ? sum(slow) / total : 0, total, ops: new Set(slow.map(({op}) => op))};
}

function measureCase(program, models, spec, threads) {
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'share-'));
  try {
    const inputs = drawInputs(spec, '1').map((tensor, i) => {
      const file = path.join(scratch, `input_${i}.pb`);
      fs.writeFileSync(file, encodeTensor(tensor));
      return {name: tensor.name, file};
    });
    return measure(program, path.join(models, spec.model), inputs, threads);
  } finally {
    fs.rmSync(scratch, {recursive: true, force: true});
  }
}

const {values: options, positionals} = parseArgs({
  allowPositionals: true,
  options: {
    specs: {type: 'string'}, models: {type: 'string'}, runners: {type: 'string'},
    threads: {type: 'string', default: '1,2'},
  },
});
for (const name of ['specs', 'models', 'runners']) {
  if (!options[name]) {
    console.error(`reference_share.mjs: --${name} DIR is missing; see the head of the file`);
    process.exit(2);
  }
}
let bad = 0;
for (const spec of readCases(options.specs, positionals)) {
  for (const threads of options.threads.split(',').map(Number)) {
    const head = `${spec.name.padEnd(46)} ${threads}`;
    try {
      const program = path.join(options.runners, 'dais');
      const {share, total, ops} = measureCase(program, options.models, spec, threads);
      if (share >= LIMIT) bad += 1;
      console.log(`${head} ${(100 * share).toFixed(2).padStart(6)} % of ` +
                  `${total.toFixed(1).padStart(10)} us  ${[...ops].join(' ')}`);
    } catch (error) {
      bad += 1;
      console.log(`${head} FAILED ${error.message}`);
    }
  }
}
process.exit(bad ? 1 : 0);
