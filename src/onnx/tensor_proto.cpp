#include "onnx/tensor_proto.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/file.h"
#include "ir/stored.h"

namespace dais::onnx {
namespace {

[[noreturn]] void fail(const TensorProto& proto, Code code, const std::string& problem,
                       const std::string& remedy = {}) {
  throw Error(code, problem, "tensor '" + std::string(proto.name) + "'", remedy);
}

DType dtype_of_proto(const TensorProto& proto) {
  const auto dtype = dtype_from_onnx(proto.data_type);
  if (!dtype || *dtype == DType::undefined)
    fail(proto, Code::unsupported,
         "element type " + std::to_string(proto.data_type) +
             " is not one of ONNX up to IR version 14");
  return *dtype;
}

Shape shape_of(const TensorProto& proto, std::span<const int64_t> dims) {
  Shape shape;
  for (const int64_t size : dims) {
    if (size < 0) fail(proto, Code::invalid_model, "size " + std::to_string(size) + " is negative");
    if (shape.rank() == kMaxRank)
      fail(proto, Code::unsupported, "more than " + std::to_string(kMaxRank) + " axes");
    shape.push_back(size);
  }
  try {
    shape.elements();
  } catch (const Error& error) {
    fail(proto, Code::invalid_model, error.problem());
  }
  return shape;
}

/// The number of a TensorProto field that holds the elements when they are not raw.
uint32_t typed_field(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::c64: return 4;
    case DType::string: return 6;
    case DType::i64: return 7;
    case DType::f64:
    case DType::c128: return 10;
    case DType::u32:
    case DType::u64: return 11;
    default: return 5;
  }
}

/// Spreads packed elements, the first one in the lowest bits.
void unpack_byte(uint8_t byte, DType dtype, uint8_t* to, size_t count) {
  const int bits = dtype_bits(dtype);
  const uint8_t mask = static_cast<uint8_t>((1 << bits) - 1);
  const bool extend = dtype == DType::i4 || dtype == DType::i2;
  for (size_t i = 0; i < count; ++i) {
    uint8_t value = static_cast<uint8_t>(byte >> (bits * static_cast<int>(i))) & mask;
    if (extend && value >> (bits - 1)) value = static_cast<uint8_t>(value | ~mask);
    to[i] = value;
  }
}

void unpack(Bytes from, DType dtype, uint8_t* to, size_t elements) {
  const auto per_byte = static_cast<size_t>(8 / dtype_bits(dtype));
  for (size_t at = 0; at < elements; at += per_byte)
    unpack_byte(from[at / per_byte], dtype, to + at, std::min(per_byte, elements - at));
}

bool is_packed(DType dtype) { return dtype != DType::string && dtype_bits(dtype) < 8; }

/// How many entries the typed field has.
size_t count_typed(const TensorProto& proto, uint32_t field) {
  size_t count = 0;
  WireReader reader(proto.message, "TensorProto");
  while (reader.next()) {
    if (reader.field() != field) continue;
    if (field == 6)
      ++count;
    else if (field == 4)
      count += reader.wire() == Wire::bytes ? reader.bytes().size() / 4 : 1;
    else if (field == 10)
      count += reader.wire() == Wire::bytes ? reader.bytes().size() / 8 : 1;
    else
      reader.each_varint([&](uint64_t) { ++count; });
  }
  return count;
}

/// Fills from varints; `out` takes exactly as many as count_typed() said.
void fill_varints(WireReader reader, uint32_t field, Tensor& out) {
  const DType dtype = out.dtype();
  size_t at = 0;
  const auto each = [&](auto&& store) {
    while (reader.next())
      if (reader.field() == field) reader.each_varint(store);
  };
  if (is_packed(dtype)) {
    const auto per_byte = static_cast<size_t>(8 / dtype_bits(dtype));
    const auto total = static_cast<size_t>(out.elements());
    each([&](uint64_t value) {
      unpack_byte(static_cast<uint8_t>(value), dtype, out.storage<uint8_t>() + at,
                  std::min(per_byte, total - at));
      at += per_byte;
    });
  } else if (dtype == DType::boolean) {
    each([&](uint64_t value) { out.storage<uint8_t>()[at++] = value != 0; });
  } else {
    visit_storage(dtype, [&]<typename U>() {
      if constexpr (std::is_integral_v<U>)
        each([&](uint64_t value) { out.storage<U>()[at++] = static_cast<U>(value); });
    });
  }
}

template <typename T>
void fill_fixed(WireReader reader, uint32_t field, T* out) {
  while (reader.next())
    if (reader.field() == field) reader.each_fixed<T>([&](T value) { *out++ = value; });
}

Tensor read_typed(const TensorProto& proto, DType dtype, const Shape& shape) {
  const uint32_t field = typed_field(dtype);
  const auto elements = static_cast<size_t>(shape.elements());
  const size_t expected = is_packed(dtype)    ? stored_bytes(dtype, shape.elements())
                          : is_complex(dtype) ? elements * 2
                                              : elements;
  const size_t count = count_typed(proto, field);
  if (count != expected)
    fail(proto, Code::invalid_model,
         "shape " + shape.text() + " of " + std::string(dtype_name(dtype)) + " needs " +
             std::to_string(expected) + " stored entries, the file has " + std::to_string(count));
  Tensor out(dtype, shape);
  WireReader reader(proto.message, "TensorProto");
  if (field == 4) {
    fill_fixed(reader, field, out.storage<float>());
  } else if (field == 10) {
    fill_fixed(reader, field, out.storage<double>());
  } else if (field == 6) {
    auto* to = out.storage<std::string>();
    while (reader.next())
      if (reader.field() == field) *to++ = reader.text();
  } else {
    fill_varints(reader, field, out);
  }
  return out;
}

/// A view where the bytes can be used as they are, else a copy.
Tensor from_raw(Bytes bytes, DType dtype, const Shape& shape,
                const std::shared_ptr<const void>& owner) {
  if (!is_packed(dtype)) {
    Tensor stored = stored_tensor(bytes, dtype, shape, owner);
    if (stored.raw() != bytes.data()) MappedFile::release(bytes.data(), bytes.size());
    return stored;
  }
  Tensor out(dtype, shape);
  unpack(bytes, dtype, out.storage<uint8_t>(), static_cast<size_t>(shape.elements()));
  MappedFile::release(bytes.data(), bytes.size());
  return out;
}

uint64_t parse_offset(const TensorProto& proto, std::string_view text) {
  uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size())
    fail(proto, Code::invalid_model,
         "external data: '" + std::string(text) + "' is no position in a file");
  return value;
}

/// Rows of linear positions from either form of sparse indices.
std::vector<int64_t> linear_indices(const SparseTensorProto& proto, const Tensor& indices,
                                    const Shape& shape, int64_t stored) {
  const auto rank = static_cast<int64_t>(shape.rank());
  const bool rows = indices.rank() == 2;
  const bool right = indices.dtype() == DType::i64 && (rows ? indices.shape() == Shape{stored, rank}
                                                            : indices.shape() == Shape{stored});
  if (!right)
    fail(proto.values, Code::invalid_model,
         "sparse indices are " + indices.describe() + " for " + std::to_string(stored) + " values");
  const auto given = indices.data<int64_t>();
  if (!rows) return {given.begin(), given.end()};
  std::vector<int64_t> out;
  for (int64_t i = 0; i < stored; ++i) {
    int64_t at = 0;
    for (int64_t axis = 0; axis < rank; ++axis) {
      const int64_t index = given[static_cast<size_t>(i * rank + axis)];
      const int64_t size = shape[static_cast<size_t>(axis)];
      if (index < 0 || index >= size)
        fail(proto.values, Code::invalid_model,
             "sparse index " + std::to_string(index) + " is outside size " + std::to_string(size));
      at = at * size + index;
    }
    out.push_back(at);
  }
  return out;
}

}  // namespace

size_t stored_bytes(DType dtype, int64_t elements) {
  const auto count = static_cast<size_t>(elements);
  const auto bits = static_cast<size_t>(dtype_bits(dtype));
  return bits >= 8 ? count * (bits / 8) : (count * bits + 7) / 8;
}

Bytes TensorReader::external(const TensorProto& proto, size_t size_bytes,
                             std::shared_ptr<const void>& owner) {
  if (!folder_)
    fail(proto, Code::invalid_argument, "its data lies in another file",
         "Load the model by its path, so that files beside it can be found");
  std::string_view location;
  uint64_t offset = 0, length = size_bytes;
  for (const auto& [key, value] : proto.external) {
    if (key == "location") location = value;
    if (key == "offset") offset = parse_offset(proto, value);
    if (key == "length") length = parse_offset(proto, value);
  }
  if (length != size_bytes)
    fail(proto, Code::invalid_model,
         "external data has " + std::to_string(length) + " bytes, the shape needs " +
             std::to_string(size_bytes));
  try {
    const auto path = confined_path(*folder_, location);
    auto& file = files_[path.string()];
    if (!file) file = MappedFile::open(path);
    owner = file;
    const Bytes all = file->bytes();
    if (offset > all.size() || length > all.size() - offset)
      fail(proto, Code::invalid_model,
           "external data at " + std::to_string(offset) + " with " + std::to_string(length) +
               " bytes lies outside '" + std::string(location) + "', which has " +
               std::to_string(all.size()));
    return all.subspan(offset, length);
  } catch (const Error& error) {
    if (error.where().starts_with("tensor '")) throw;
    throw error.at("external data of tensor '" + std::string(proto.name) + "'");
  }
}

Tensor TensorReader::read(const TensorProto& proto) {
  const DType dtype = dtype_of_proto(proto);
  const Shape shape = shape_of(proto, proto.dims);
  if (!proto.raw && !proto.is_external) return read_typed(proto, dtype, shape);
  if (dtype == DType::string) fail(proto, Code::invalid_model, "strings cannot be stored as bytes");
  if (static_cast<uint64_t>(shape.elements()) > uint64_t{1} << 56)
    fail(proto, Code::invalid_model, "shape " + shape.text() + " has too many elements");
  const size_t size_bytes = stored_bytes(dtype, shape.elements());
  std::shared_ptr<const void> owner = owner_;
  const Bytes bytes = proto.is_external ? external(proto, size_bytes, owner) : *proto.raw;
  if (bytes.size() != size_bytes)
    fail(proto, Code::invalid_model,
         "shape " + shape.text() + " of " + std::string(dtype_name(dtype)) + " needs " +
             std::to_string(size_bytes) + " bytes, the file has " + std::to_string(bytes.size()));
  return from_raw(bytes, dtype, shape, owner);
}

Tensor TensorReader::read(const SparseTensorProto& proto) {
  // A few stored values may claim any dense size; beyond these bounds the claim is refused.
  constexpr int64_t kFreeElements = 1 << 26, kMaxExpansion = 4096;
  const Tensor values = read(proto.values), indices = read(proto.indices);
  const Shape shape = shape_of(proto.values, proto.dims);
  const int64_t elements = shape.elements();
  if (values.rank() != 1) fail(proto.values, Code::invalid_model, "sparse values are not a list");
  if (elements > kFreeElements && elements / kMaxExpansion > values.elements())
    fail(proto.values, Code::exhausted,
         "sparse shape " + shape.text() + " is too large for " + std::to_string(values.elements()) +
             " stored values");
  const auto positions = linear_indices(proto, indices, shape, values.elements());
  Tensor out(values.dtype(), shape);
  if (values.dtype() != DType::string) std::memset(out.raw(), 0, out.bytes());
  visit_storage(values.dtype(), [&]<typename U>() {
    for (size_t i = 0; i < positions.size(); ++i) {
      if (positions[i] < 0 || positions[i] >= elements)
        fail(proto.values, Code::invalid_model,
             "sparse index " + std::to_string(positions[i]) + " is outside the shape");
      out.storage<U>()[positions[i]] = values.storage<U>()[i];
    }
  });
  return out;
}

}  // namespace dais::onnx
