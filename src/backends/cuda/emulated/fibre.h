#pragma once

#include <cstddef>
#include <vector>

#include "backends/cuda/emulated/text/emulated_abi.h"

namespace dais::cuda::emulated {

/// Leaves the running context, whose place is stored in *left, and goes on at `entered`. Saves what
/// the platform's calling convention asks a function to preserve, nothing else.
extern "C" void dais_switch_fibre(void** left, void* entered);

/// The stacks of the CUDA threads that one operating-system thread runs. Each is kStackBytes large
/// and aligned to it, with a page below that faults when it is touched.
class Stacks {
 public:
  explicit Stacks(size_t most);
  ~Stacks();
  Stacks(const Stacks&) = delete;

  /// Lowest address of a free stack. The caller gives back what it took.
  unsigned char* take();
  void give(unsigned char* stack);
  bool contains(const void* address) const {
    const auto* byte = static_cast<const unsigned char*>(address);
    return byte >= first_ && byte < first_ + used_ * kStackBytes;
  }

  /// The place to switch to for `start` to run on the stack. `start` never returns.
  static void* prepare(unsigned char* stack, void (*start)());

 private:
  void* mapping_ = nullptr;
  size_t mapped_bytes_ = 0, used_ = 0, most_;
  unsigned char* first_ = nullptr;
  std::vector<unsigned char*> free_;
};

}  // namespace dais::cuda::emulated
