// Reads and writes ONNX TensorProto messages: the one file form that holds every element type.
// A tensor is {name, type, dims, data}: `type` is the ONNX element type number, `data` the raw
// little-endian bytes.

export const ELEMENT_TYPES = {
  f32: {number: 1, size: 4},
  u8: {number: 2, size: 1},
  i8: {number: 3, size: 1},
  u16: {number: 4, size: 2},
  i16: {number: 5, size: 2},
  i32: {number: 6, size: 4},
  i64: {number: 7, size: 8},
  bool: {number: 9, size: 1},
  f16: {number: 10, size: 2},
  f64: {number: 11, size: 8},
  u32: {number: 12, size: 4},
  u64: {number: 13, size: 8},
  bf16: {number: 16, size: 2},
};

const FIELD_DIMS = 1;
const FIELD_DATA_TYPE = 2;
const FIELD_NAME = 8;
const FIELD_RAW_DATA = 9;
const WIRE_VARINT = 0;
const WIRE_BYTES = 2;

function varint(value) {
  const bytes = [];
  let rest = BigInt(value);
  do {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    bytes.push(rest ? low | 0x80 : low);
  } while (rest);
  return Buffer.from(bytes);
}

function lengthDelimited(field, payload) {
  return [varint((field << 3) | WIRE_BYTES), varint(payload.length), payload];
}

/** The bytes of a TensorProto that keeps its values in raw_data. */
export function encodeTensor({name, type, dims, data}) {
  const parts = dims.flatMap((dim) => [varint((FIELD_DIMS << 3) | WIRE_VARINT), varint(dim)]);
  parts.push(varint((FIELD_DATA_TYPE << 3) | WIRE_VARINT), varint(type));
  parts.push(...lengthDelimited(FIELD_NAME, Buffer.from(name)));
  parts.push(...lengthDelimited(FIELD_RAW_DATA, data));
  return Buffer.concat(parts);
}

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }
  done() { return this.at >= this.bytes.length; }
  varint() {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.bytes[this.at++];
      if (byte === undefined) break;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return Number(value);
    }
    throw new Error('TensorProto: cut or overlong varint');
  }
  chunk() {
    const length = this.varint();
    if (this.at + length > this.bytes.length) throw new Error('TensorProto: cut field');
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }
}

/** Reads a TensorProto that `encodeTensor` or a runner wrote (values in raw_data). */
export function decodeTensor(bytes) {
  const tensor = {name: '', type: 0, dims: [], data: Buffer.alloc(0)};
  const reader = new Reader(bytes);
  while (!reader.done()) {
    const key = reader.varint();
    const [field, wire] = [key >> 3, key & 7];
    if (field === FIELD_DIMS && wire === WIRE_BYTES) {
      const dims = new Reader(reader.chunk());
      while (!dims.done()) tensor.dims.push(dims.varint());
    } else if (field === FIELD_DIMS && wire === WIRE_VARINT) {
      tensor.dims.push(reader.varint());
    } else if (field === FIELD_DATA_TYPE && wire === WIRE_VARINT) {
      tensor.type = reader.varint();
    } else if (field === FIELD_NAME && wire === WIRE_BYTES) {
      tensor.name = reader.chunk().toString();
    } else if (field === FIELD_RAW_DATA && wire === WIRE_BYTES) {
      tensor.data = reader.chunk();
    } else {
      throw new Error(`TensorProto: field ${field} with wire type ${wire} is not expected here`);
    }
  }
  return tensor;
}

function halfToNumber(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

function bfloatToNumbers(bits) {
  return new Float32Array(Uint32Array.from(bits, (pattern) => pattern << 16).buffer);
}

/** The nearest fp16 bit pattern (ties to even) of a number. */
export function numberToHalf(value) {
  if (Number.isNaN(value)) return 0x7e00;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size >= 65520) return sign | 0x7c00;
  const exponent = size < 2 ** -14 ? -14 : Math.floor(Math.log2(size));
  const steps = size / 2 ** (exponent - 10);
  let rounded = Math.floor(steps);
  const rest = steps - rounded;
  if (rest > 0.5 || (rest === 0.5 && rounded % 2 === 1)) rounded += 1;
  // A normal number carries its leading one into the exponent field, as does rounding up.
  return sign | (((exponent + 14) << 10) + rounded);
}

/** The values as an array of numbers (64-bit integers lose what a double cannot hold). */
export function tensorValues({name, type, data}) {
  const copy = new Uint8Array(data).buffer;
  switch (type) {
    case 1: return new Float32Array(copy);
    case 2: case 9: return new Uint8Array(copy);
    case 3: return new Int8Array(copy);
    case 4: return new Uint16Array(copy);
    case 5: return new Int16Array(copy);
    case 6: return new Int32Array(copy);
    case 7: return Float64Array.from(new BigInt64Array(copy), Number);
    case 10: return Float32Array.from(new Uint16Array(copy), halfToNumber);
    case 11: return new Float64Array(copy);
    case 12: return new Uint32Array(copy);
    case 13: return Float64Array.from(new BigUint64Array(copy), Number);
    case 16: return bfloatToNumbers(new Uint16Array(copy));
    default: throw new Error(`tensor ${name}: element type ${type} has no numbers to compare`);
  }
}
