#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backends/cuda/launch.h"
#include "ops/elementwise/text_cuda.h"

namespace dais {

constexpr size_t kMostOuter = 7;  ///< axes of a Space or RowSpace, as on the device

/// What a generated kernel reads, with its constants on the device.
class TextInputs {
 public:
  TextInputs() = default;
  TextInputs(const KernelQuery& query, std::vector<TextOperand> operands);

  /// The addresses of a run: operands, then as many results as `pointers` has room for.
  void collect(const Arguments& arguments, std::span<void*> pointers) const noexcept;

 private:
  std::vector<TextOperand> operands_;
  std::vector<std::shared_ptr<DeviceMemory>> constants_;  ///< by operand; null: an input
};

/// The operand's sizes in this binding.
const Shape& shape_of(const TextOperand& operand, const Sizes& sizes);

/// The bytes of a kernel's Space<operands> or RowSpace<operands>: how many packs or rows there are,
/// the size of each axis that is walked inside one, the sizes of the outer axes with each operand's
/// strides along them, and a number of each operand for what is walked inside.
std::vector<std::byte> space_bytes(int64_t count, int64_t inner_size,
                                   std::span<const int64_t> outer_sizes,
                                   std::span<const std::span<const int64_t>> outer_strides,
                                   std::span<const int32_t> inner);

}  // namespace dais
