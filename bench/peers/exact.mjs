// Who is right when a quantised model's answers differ: a rounding that falls to the other side of an
// edge is carried on by the layers behind it, and both answers are then equally far from what the
// model means. `dais verify --exact` evaluates that in f64 and measures both.
import {spawnSync} from 'child_process';
import fs from 'fs';
import path from 'path';
import {linkModel} from './cases.mjs';
import {decodeTensor} from './tensor_proto.mjs';

// Ours may be this many times as far (RMS) from the exact answer as the peer's. Two distances of
// independent roundings differ by less.
const FACTOR = 1.25;

function ask(program, args) {
  const result = spawnSync(program, args, {encoding: 'utf8', maxBuffer: 1 << 28});
  if (result.error) throw result.error;
  return result.stdout.split('\n', 1)[0];
}

// Files follow the model's order of inputs, which a case file need not keep.
function putInputs(program, model, files, folder) {
  const {inputs} = JSON.parse(ask(program, ['inspect', model, '--json']));
  const named = new Map(files.map((file) => [decodeTensor(fs.readFileSync(file)).name, file]));
  inputs.forEach(({name}, i) => {
    fs.copyFileSync(named.get(name), path.join(folder, `input_${i}.pb`));
  });
}

/** {ok, note}: whether dais is as near to the exact answer as the peer, whose outputs lie in `theirs`. */
export function settle(program, spec, models, threads, files, theirs, scratch) {
  const folder = path.join(scratch, 'exact', spec.name);
  const set = path.join(folder, 'test_data_set_0');
  fs.rmSync(folder, {recursive: true, force: true});
  fs.mkdirSync(set, {recursive: true});
  linkModel(spec, models, folder);
  putInputs(program, path.join(folder, 'model.onnx'), files, set);
  for (const file of fs.readdirSync(theirs)) {
    fs.copyFileSync(path.join(theirs, file), path.join(set, file));
  }
  const {status, measured = []} = JSON.parse(ask(program, [
    'verify', folder, '--exact', String(FACTOR), '--of-largest', '2e-5', '--steps', '1', '--top1',
    '--threads', String(threads), '--json']));
  if (!measured.length) return {ok: false, note: ''};
  const worst = measured.reduce((a, b) => (b.rms > a.rms ? b : a));
  const text = (value) => value.toExponential(1);
  return {ok: status === 'passed',
          note: `${text(worst.rms)} from the exact answer, the peer ${text(worst.rms_on_file)}`};
}
