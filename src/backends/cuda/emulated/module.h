#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "backends/cuda/emulated/finding.h"
#include "backends/cuda/emulated/memory.h"

namespace dais::cuda::emulated {

/// A compiled program, loaded: a shared library of this machine. Any thread.
class Module {
 public:
  /// Throws `invalid_argument` when the image is no module of this version of the emulation.
  static std::shared_ptr<const Module> load(std::string_view image);
  ~Module();
  Module(const Module&) = delete;

  /// Null: there is no kernel of that name.
  const KernelInfo* kernel(const std::string& name) const;
  bool checked() const { return info_->checked; }
  /// The segments that hold its constants and variables.
  Region data() const { return data_; }
  /// The __shared__ variables of all its kernels, as the calling thread has them.
  Region shared() const;

  struct Line {
    std::string file;
    int line = 0;
  };
  /// Where in the program's text a code address lies; what the emulation's own headers expand to
  /// counts as the place where they were used. Asks the system's addr2line.
  Line line_of(const void* site) const;

 private:
  Module() = default;

  int file_ = -1;
  void* handle_ = nullptr;
  const ModuleInfo* info_ = nullptr;
  const unsigned char* base_ = nullptr;
  Region data_;
  size_t shared_bytes_ = 0;
};

/// The bytes of an ELF file that begins at `image`, of at most 1 GiB; 0: it is none.
size_t image_bytes(const void* image);

}  // namespace dais::cuda::emulated
