#include <algorithm>

#include "onnx/tensor_proto.h"

namespace dais::onnx {
namespace {

/// What an element of a SequenceProto or OptionalProto is; the numbers of their DataType.
enum class Element : int64_t {
  none = 0,
  tensor = 1,
  sparse_tensor = 2,
  sequence = 3,
  map = 4,
  optional = 5
};

Element element_of(const Type& type) {
  switch (type.kind) {
    case Type::Kind::tensor: return Element::tensor;
    case Type::Kind::sequence: return Element::sequence;
    case Type::Kind::map: return Element::map;
    case Type::Kind::optional: return Element::optional;
  }
  return Element::none;
}

uint8_t packed_byte(const uint8_t* from, int bits, size_t count) {
  uint8_t byte = 0;
  for (size_t i = 0; i < count; ++i)
    byte =
        static_cast<uint8_t>(byte | (from[i] & ((1 << bits) - 1)) << (bits * static_cast<int>(i)));
  return byte;
}

void write_datum(WireWriter& out, const Datum& datum, const Type& type);

void write_sequence(WireWriter& out, const Datum& datum, const Type& element) {
  // The field of a value kind is its number plus two.
  const auto kind = static_cast<int64_t>(element_of(element));
  out.integer(2, kind);
  if (!datum.items) return;
  for (const Datum& item : *datum.items) {
    WireWriter nested;
    write_datum(nested, item, element);
    out.message(static_cast<uint32_t>(kind + 2), nested);
  }
}

void write_map(WireWriter& out, const Datum& datum, const Type& type) {
  const Tensor& keys = datum.tensor;
  out.integer(2, static_cast<int64_t>(type.dtype));
  if (keys.dtype() == DType::string) {
    for (const auto& key : keys.data<std::string>()) out.text(4, key);
  } else {
    out.integers(3, keys.to_ints());
  }
  // Values are stored as one sequence with an entry a key.
  const Tensor& values = datum.items->at(0).tensor;
  WireWriter sequence;
  sequence.integer(2, static_cast<int64_t>(Element::tensor));
  visit_storage(values.dtype(), [&]<typename U>() {
    for (int64_t i = 0; i < values.elements(); ++i) {
      Tensor one(values.dtype(), Shape{});
      one.storage<U>()[0] = values.storage<U>()[i];
      WireWriter nested;
      write_tensor(nested, one, {});
      sequence.message(3, nested);
    }
  });
  out.message(5, sequence);
}

void write_optional(WireWriter& out, const Datum& datum, const Type& element) {
  const auto kind = static_cast<int64_t>(element_of(element));
  out.integer(2, kind);
  if (!datum.has_value()) return;
  WireWriter nested;
  write_datum(nested, datum, element);
  out.message(static_cast<uint32_t>(kind + 2), nested);
}

void write_datum(WireWriter& out, const Datum& datum, const Type& type) {
  switch (type.kind) {
    case Type::Kind::tensor: return write_tensor(out, datum.tensor, {});
    case Type::Kind::sequence: return write_sequence(out, datum, *type.element);
    case Type::Kind::map: return write_map(out, datum, type);
    case Type::Kind::optional: return write_optional(out, datum, *type.element);
  }
}

/// One tensor out of the single-element tensors that map values are stored as.
Tensor stack_scalars(const std::vector<Datum>& items) {
  if (items.empty()) return Tensor(DType::f32, Shape{0});
  Tensor out(items[0].tensor.dtype(), Shape{static_cast<int64_t>(items.size())});
  visit_storage(out.dtype(), [&]<typename U>() {
    for (size_t i = 0; i < items.size(); ++i) {
      const Tensor& item = items[i].tensor;
      if (item.dtype() != out.dtype() || item.elements() != 1)
        throw Error(Code::unsupported, "a map's values are not numbers or strings of one type");
      out.storage<U>()[i] = item.storage<U>()[0];
    }
  });
  return out;
}

/// What is optional while running may be written as the plain sequence it turned out to be: then
/// its elements are named as tensors, not as a sequence.
bool is_bare_sequence(Bytes bytes, const Type& type) {
  if (type.element->kind != Type::Kind::sequence) return false;
  int64_t kind = 0;
  WireReader reader(bytes, "OptionalProto");
  while (reader.next())
    if (reader.field() == 2) kind = reader.integer();
  return kind == static_cast<int64_t>(element_of(*type.element->element));
}

}  // namespace

std::string pack_elements(const Tensor& tensor) {
  const auto elements = static_cast<size_t>(tensor.elements());
  const int bits = dtype_bits(tensor.dtype());
  if (bits >= 8) return {static_cast<const char*>(tensor.raw()), tensor.bytes()};
  const auto per_byte = static_cast<size_t>(8 / bits);
  std::string out;
  out.reserve(stored_bytes(tensor.dtype(), tensor.elements()));
  for (size_t at = 0; at < elements; at += per_byte)
    out.push_back(static_cast<char>(
        packed_byte(tensor.storage<uint8_t>() + at, bits, std::min(per_byte, elements - at))));
  return out;
}

void write_tensor(WireWriter& out, const Tensor& tensor, std::string_view name) {
  out.integers(1, tensor.shape().dims());
  out.integer(2, static_cast<int64_t>(tensor.dtype()));
  if (!name.empty()) out.text(8, name);
  if (tensor.dtype() == DType::string) {
    for (const auto& text : tensor.data<std::string>()) out.text(6, text);
  } else if (dtype_bits(tensor.dtype()) >= 8) {
    out.bytes(9, {static_cast<const uint8_t*>(tensor.raw()), tensor.bytes()}, tensor.owner());
  } else {
    out.text(9, pack_elements(tensor));
  }
}

std::string datum_bytes(const Datum& datum, const Type& type, std::string_view name) {
  WireWriter out;
  if (type.is_tensor()) {
    write_tensor(out, datum.tensor, name);
  } else {
    if (!name.empty()) out.text(1, name);
    write_datum(out, datum, type);
  }
  return out.data();
}

Datum TensorReader::read(Bytes bytes, const Type& type) {
  switch (type.kind) {
    case Type::Kind::tensor: return read_tensor(WireReader(bytes, "TensorProto"));
    case Type::Kind::sequence: return read_sequence(WireReader(bytes, "SequenceProto"));
    case Type::Kind::map: return read_map(WireReader(bytes, "MapProto"));
    case Type::Kind::optional:
      if (is_bare_sequence(bytes, type)) return read(bytes, *type.element);
      return read_optional(WireReader(bytes, "OptionalProto"));
  }
  return {};
}

Datum TensorReader::read_tensor(WireReader reader) { return read(parse_tensor(reader)); }

Datum TensorReader::read_sequence(WireReader reader) {
  std::vector<Datum> items;
  while (reader.next()) {
    switch (reader.field()) {
      case 3: items.push_back(read_tensor(reader.message("TensorProto"))); break;
      case 4:
        items.emplace_back(read(parse_sparse_tensor(reader.message("SparseTensorProto"))));
        break;
      case 5: items.push_back(read_sequence(reader.message("SequenceProto"))); break;
      case 6: items.push_back(read_map(reader.message("MapProto"))); break;
      case 7: items.push_back(read_optional(reader.message("OptionalProto"))); break;
    }
  }
  return Datum::sequence(std::move(items));
}

Datum TensorReader::read_optional(WireReader reader) {
  Datum out;
  while (reader.next()) {
    switch (reader.field()) {
      case 3: out = read_tensor(reader.message("TensorProto")); break;
      case 4: out = read(parse_sparse_tensor(reader.message("SparseTensorProto"))); break;
      case 5: out = read_sequence(reader.message("SequenceProto")); break;
      case 6: out = read_map(reader.message("MapProto")); break;
      case 7: out = read_optional(reader.message("OptionalProto")); break;
    }
  }
  return out;
}

Datum TensorReader::read_map(WireReader reader) {
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
  Datum values = Datum::sequence({});
  while (reader.next()) {
    switch (reader.field()) {
      case 3: reader.append(numbers); break;
      case 4: texts.emplace_back(reader.text()); break;
      case 5: values = read_sequence(reader.message("SequenceProto")); break;
    }
  }
  Tensor keys = texts.empty()
                    ? Tensor::ints(numbers)
                    : Tensor::of<std::string>(Shape{static_cast<int64_t>(texts.size())}, texts);
  Tensor stacked = stack_scalars(*values.items);
  if (stacked.elements() != keys.elements())
    throw Error(Code::invalid_model, "a map has " + std::to_string(keys.elements()) + " keys but " +
                                         std::to_string(stacked.elements()) + " values");
  return Datum::map(std::move(keys), std::move(stacked));
}

}  // namespace dais::onnx
