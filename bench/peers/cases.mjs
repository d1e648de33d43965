// The list of cases: each spec file names a model and how to draw its inputs.
//
//   model FILE.onnx
//   input NAME DTYPE DIMS KIND A B
//
// DIMS like 1x3x224x224, `-` for a scalar. KIND: `uniform` A..B, `const` A, `randint` A..B (B
// excluded), `iota` (A + index along the last dimension).
import fs from 'fs';
import path from 'path';
import {ELEMENT_TYPES, numberToHalf} from './tensor_proto.mjs';

const KINDS = [
  ['quantised', /qdq|qoperator|int8|ort4|ort8dyn|u8s8|nb4/],
  ['tiny', /^oww_(alexa|hey|timer|weather|hello)|gpt2tiny|^micro_kws/],
  ['recurrent', /^silero|^gtcrn|^oww_/],
  ['transformer', /bert|minilm|gpt2|llama|vit|gemm|gemv|_mm_/],
];

/** cnn, transformer, recurrent (with speech front ends), tiny or quantised. */
export function kindOf(caseName) {
  return KINDS.find(([, pattern]) => pattern.test(caseName))?.[0] ?? 'cnn';
}

function parseInput(fields, file) {
  const [, name, dtype, dims, draw, a, b] = fields;
  if (!ELEMENT_TYPES[dtype]) throw new Error(`${file}: input ${name}: unknown type ${dtype}`);
  const sizes = dims === '-' ? [] : dims.split('x').map(Number);
  return {name, dtype, dims: sizes, draw, a: Number(a ?? 0), b: Number(b ?? 0)};
}

function parseSpec(file) {
  const spec = {name: path.basename(file, '.txt'), model: '', inputs: []};
  for (const line of fs.readFileSync(file, 'utf8').split('\n')) {
    const fields = line.trim().split(/\s+/);
    if (fields[0] === 'model') spec.model = fields[1];
    if (fields[0] === 'input') spec.inputs.push(parseInput(fields, file));
  }
  if (!spec.model) throw new Error(`${file}: no "model FILE" line`);
  spec.kind = kindOf(spec.name);
  return spec;
}

/** The specs of a folder, in name order; with patterns, those whose name matches one of them. */
export function readCases(dir, patterns = []) {
  const wanted = patterns.map((pattern) => new RegExp(pattern));
  const matches = (name) => !wanted.length || wanted.some((pattern) => pattern.test(name));
  const names = fs.readdirSync(dir).filter((f) => f.endsWith('.txt') && matches(f.slice(0, -4)));
  return names.sort().map((file) => parseSpec(path.join(dir, file)));
}

/** A generator of numbers in [0, 1) that a text seeds: the same text gives the same numbers. */
export function randomFrom(text) {
  let state = 2166136261;
  for (const byte of Buffer.from(text)) state = Math.imul(state ^ byte, 16777619);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const STORE = {
  f32: (count) => new Float32Array(count),
  u8: (count) => new Uint8Array(count),
  i8: (count) => new Int8Array(count),
  i32: (count) => new Int32Array(count),
  i64: (count) => new BigInt64Array(count),
  f16: (count) => new Uint16Array(count),
};
const CONVERT = {i64: (value) => BigInt(value), f16: numberToHalf};

function drawer({draw, a, b, dims}, random) {
  const last = dims.at(-1) ?? 1;
  switch (draw) {
    case 'uniform': return () => a + (b - a) * random();
    case 'randint': return () => a + Math.floor((b - a) * random());
    case 'const': return () => a;
    case 'iota': return (index) => a + (index % last);
    default: throw new Error(`unknown way to draw an input: ${draw}`);
  }
}

/** The input tensors of a case (see tensor_proto.mjs); the seed alone decides the values. */
export function drawInputs(spec, seed) {
  return spec.inputs.map((input) => {
    const values = STORE[input.dtype](input.dims.reduce((x, y) => x * y, 1));
    const next = drawer(input, randomFrom(`${spec.name}/${input.name}/${seed}`));
    const convert = CONVERT[input.dtype] ?? ((value) => value);
    for (let i = 0; i < values.length; i++) values[i] = convert(next(i));
    const data = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
    return {name: input.name, type: ELEMENT_TYPES[input.dtype].number, dims: input.dims, data};
  });
}

// External weights are looked up beside model.onnx, and a reader may rightly refuse a path that
// leaves the folder: a hard link keeps them inside without a second copy.
function link(from, to) {
  fs.rmSync(to, {force: true});
  const source = fs.realpathSync(from);
  try {
    fs.linkSync(source, to);
  } catch {
    fs.symlinkSync(source, to);
  }
}

/** Puts the model, as model.onnx, and its weights into a folder. */
export function linkModel(spec, models, folder) {
  link(path.join(models, spec.model), path.join(folder, 'model.onnx'));
  const weights = spec.model.replace(/\.onnx$/, '.data');
  if (fs.existsSync(path.join(models, weights))) {
    link(path.join(models, weights), path.join(folder, weights));
  }
}
