#include "tensor_file.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>
#include <stdexcept>
#include <string_view>

namespace dais::peers {
namespace {

constexpr size_t kAlignment = 64;
enum Field : uint64_t { field_dims = 1, field_type = 2, field_name = 8, field_raw_data = 9 };
enum Wire : uint64_t { wire_varint = 0, wire_bytes = 2 };

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty(); }

  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw std::runtime_error("tensor file: cut or overlong varint");
  }

  std::string_view chunk() {
    const uint64_t length = varint();
    if (length > rest_.size()) throw std::runtime_error("tensor file: cut field");
    const std::string_view chunk = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return chunk;
  }

 private:
  std::string_view rest_;
};

void read_field(WireReader& reader, Tensor& tensor) {
  const uint64_t key = reader.varint();
  const uint64_t field = key >> 3, wire = key & 7;
  if (field == field_dims && wire == wire_varint) {
    tensor.dims.push_back(static_cast<int64_t>(reader.varint()));
  } else if (field == field_dims && wire == wire_bytes) {
    WireReader dims(reader.chunk());
    while (!dims.done()) tensor.dims.push_back(static_cast<int64_t>(dims.varint()));
  } else if (field == field_type && wire == wire_varint) {
    tensor.type = static_cast<int32_t>(reader.varint());
  } else if (field == field_name && wire == wire_bytes) {
    tensor.name = reader.chunk();
  } else if (field == field_raw_data && wire == wire_bytes) {
    const std::string_view data = reader.chunk();
    tensor.bytes = AlignedBytes(data.size());
    std::memcpy(tensor.bytes.data(), data.data(), data.size());
  } else {
    throw std::runtime_error("tensor file: unexpected field " + std::to_string(field));
  }
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void put_key(std::string& out, Field field, Wire wire) { put_varint(out, field << 3 | wire); }

}  // namespace

AlignedBytes::AlignedBytes(size_t size) : size_(size) {
  const size_t rounded = (size + kAlignment) / kAlignment * kAlignment;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded)));
  if (!data_) throw std::bad_alloc();
}

void AlignedBytes::Free::operator()(std::byte* data) const { std::free(data); }

Tensor read_tensor(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  Tensor tensor;
  WireReader reader(bytes);
  while (!reader.done()) read_field(reader, tensor);
  if (!tensor.bytes.data()) tensor.bytes = AlignedBytes(0);
  return tensor;
}

void write_tensor(const std::string& path, const std::string& name, int32_t type,
                  const std::vector<int64_t>& dims, const void* data, size_t size) {
  std::string head;
  for (const int64_t dim : dims) {
    put_key(head, field_dims, wire_varint);
    put_varint(head, static_cast<uint64_t>(dim));
  }
  put_key(head, field_type, wire_varint);
  put_varint(head, static_cast<uint64_t>(type));
  put_key(head, field_name, wire_bytes);
  put_varint(head, name.size());
  head += name;
  put_key(head, field_raw_data, wire_bytes);
  put_varint(head, size);
  std::ofstream file(path, std::ios::binary);
  file.write(head.data(), static_cast<std::streamsize>(head.size()));
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace dais::peers
