#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/tables.h"

namespace dais::cuda {

class Device;

/// CUDA C++ as it is given to the compiler.
struct ProgramText {
  std::string name;  ///< "softmax.cu": what messages call it
  std::string text;
  std::vector<std::string> options = {};  ///< "-DWIDTH=4"; the architecture is added

  /// All that the result depends on, but for the device.
  std::string key() const;
};

/// One kernel of a program.
struct Function {
  DriverFunction handle = nullptr;
  int max_threads = 0;  ///< of a block
};

/// Kernels loaded on a device, until the last owner lets go.
class Program {
 public:
  Program(std::shared_ptr<Device> device, const ProgramText& text, const std::string& image);
  ~Program();
  Program(const Program&) = delete;

  /// A kernel by its name (declared extern "C"), allowed to use so much dynamic shared memory.
  /// Throws `internal` when there is none, `unsupported` when the device has not that much.
  Function function(const char* name, int shared_bytes = 0) const;

 private:
  std::shared_ptr<Device> device_;
  std::string name_;
  DriverModule module_ = nullptr;
};

/// What the driver loads, compiled now or taken from the disk (DAIS_CACHE, XDG_CACHE_HOME/dais or
/// ~/.cache/dais), where any number of processes may read and write at once.
/// Throws `internal` with the compiler's log when the text is wrong.
std::string compiled_image(const Tables& tables, int arch, const ProgramText& text);

}  // namespace dais::cuda
