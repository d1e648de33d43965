// Writes what ONNX Runtime answers, as folders in the ONNX backend-test layout, so that
// `dais verify DIR...` can check them:
//
//   node reference.mjs --specs DIR --models DIR --ort DIR --out DIR
//       [--seed N] [--threads N] [PATTERN...]
//
// --ort is a folder with node_modules/onnxruntime-node. Each case becomes OUT/CASE with
// model.onnx (a link), test_data_set_0/input_I.pb and output_I.pb. PATTERN limits the cases.
import fs from 'fs';
import {createRequire} from 'module';
import path from 'path';
import {parseArgs} from 'util';
import {drawInputs, linkModel, readCases} from './cases.mjs';
import {ELEMENT_TYPES, encodeTensor} from './tensor_proto.mjs';

const ORT_NAMES = {
  f32: 'float32', u8: 'uint8', i8: 'int8', u16: 'uint16', i16: 'int16', i32: 'int32',
  i64: 'int64', bool: 'bool', f16: 'float16', f64: 'float64', u32: 'uint32', u64: 'uint64',
};
const ORT_ARRAYS = {
  f32: Float32Array, u8: Uint8Array, i8: Int8Array, i32: Int32Array, i64: BigInt64Array,
  f16: Uint16Array,
};

function dtypeOf(number) {
  return Object.keys(ELEMENT_TYPES).find((dtype) => ELEMENT_TYPES[dtype].number === number);
}

function toOrt(ort, {type, dims, data}) {
  const dtype = dtypeOf(type);
  const values = new ORT_ARRAYS[dtype](new Uint8Array(data).buffer);
  return new ort.Tensor(ORT_NAMES[dtype], values, dims);
}

function fromOrt(name, tensor) {
  const dtype = Object.keys(ORT_NAMES).find((key) => ORT_NAMES[key] === tensor.type);
  if (!dtype) throw new Error(`output ${name} has type ${tensor.type}, which cannot be written`);
  const {buffer, byteOffset, byteLength} = tensor.data;
  const data = Buffer.from(buffer, byteOffset, byteLength);
  return {name, type: ELEMENT_TYPES[dtype].number, dims: [...tensor.dims], data};
}

async function writeCase(ort, spec, options) {
  const folder = path.join(options.out, spec.name);
  const dataSet = path.join(folder, 'test_data_set_0');
  fs.rmSync(folder, {recursive: true, force: true});
  fs.mkdirSync(dataSet, {recursive: true});
  linkModel(spec, options.models, folder);
  const session = await ort.InferenceSession.create(
      path.join(options.models, spec.model),
      {intraOpNumThreads: Number(options.threads), interOpNumThreads: 1, logSeverityLevel: 3});
  const inputs = drawInputs(spec, options.seed);
  const feeds = Object.fromEntries(inputs.map((tensor) => [tensor.name, toOrt(ort, tensor)]));
  const results = await session.run(feeds);
  // Files follow the model's order of inputs, which a case file need not keep.
  session.inputNames.forEach((name, i) => {
    const tensor = inputs.find((input) => input.name === name);
    fs.writeFileSync(path.join(dataSet, `input_${i}.pb`), encodeTensor(tensor));
  });
  session.outputNames.forEach((name, i) => {
    fs.writeFileSync(
        path.join(dataSet, `output_${i}.pb`), encodeTensor(fromOrt(name, results[name])));
  });
  await session.release();
  return session.outputNames.map((name) => `${name}[${results[name].dims.join('x')}]`);
}

const {values: options, positionals} = parseArgs({
  allowPositionals: true,
  options: {
    specs: {type: 'string'}, models: {type: 'string'}, ort: {type: 'string'},
    out: {type: 'string'}, seed: {type: 'string', default: '1'},
    threads: {type: 'string', default: '2'},
  },
});
for (const name of ['specs', 'models', 'ort', 'out']) {
  if (!options[name]) {
    console.error(`reference.mjs: --${name} DIR is missing; see the head of the file`);
    process.exit(2);
  }
}
const ort = createRequire(path.resolve(options.ort, 'package.json'))('onnxruntime-node');
let failures = 0;
for (const spec of readCases(options.specs, positionals)) {
  try {
    const outputs = await writeCase(ort, spec, options);
    const more = outputs.length > 4 ? ' ...' : '';
    console.log(`${spec.name}: ${outputs.slice(0, 4).join(' ')}${more}`);
  } catch (error) {
    failures += 1;
    console.error(`${spec.name}: ${error.message}`);
  }
}
process.exit(failures ? 1 : 0);
