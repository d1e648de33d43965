#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dais::peers {

/// Bytes aligned for the widest vector loads, so that no engine is charged for a bad address.
class AlignedBytes {
 public:
  AlignedBytes() = default;
  explicit AlignedBytes(size_t size);

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_ = 0;
};

/// One tensor as it travels between the harness and a runner. `type` is the ONNX number.
struct Tensor {
  std::string name;
  int32_t type = 0;
  std::vector<int64_t> dims;
  AlignedBytes bytes;
};

/// Reads a TensorProto file whose values lie in raw_data. Throws std::runtime_error.
Tensor read_tensor(const std::string& path);

/// Writes a TensorProto file with its values in raw_data. Throws std::runtime_error.
void write_tensor(const std::string& path, const std::string& name, int32_t type,
                  const std::vector<int64_t>& dims, const void* data, size_t size);

}  // namespace dais::peers
