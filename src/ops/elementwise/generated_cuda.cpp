#include "ops/elementwise/generated_cuda.h"

#include <algorithm>
#include <cstring>

namespace dais {

TextInputs::TextInputs(const KernelQuery& query, std::vector<TextOperand> operands)
    : operands_(std::move(operands)) {
  for (const TextOperand& operand : operands_)
    constants_.push_back(operand.input < 0 ? cuda::uploaded(query, operand.constant) : nullptr);
}

void TextInputs::collect(const Arguments& arguments, std::span<void*> pointers) const noexcept {
  for (size_t k = 0; k < operands_.size(); ++k)
    pointers[k] = operands_[k].input >= 0
                      ? const_cast<void*>(arguments.in[static_cast<size_t>(operands_[k].input)])
                      : constants_[k]->address();
  for (size_t i = operands_.size(); i < pointers.size(); ++i)
    pointers[i] = arguments.out[i - operands_.size()];
}

const Shape& shape_of(const TextOperand& operand, const Sizes& sizes) {
  return operand.input >= 0 ? sizes.in[static_cast<size_t>(operand.input)]
                            : operand.constant.shape();
}

std::vector<std::byte> space_bytes(int64_t count, int64_t inner_size,
                                   std::span<const int64_t> outer_sizes,
                                   std::span<const std::span<const int64_t>> outer_strides,
                                   std::span<const int32_t> inner) {
  const size_t operands = std::max<size_t>(outer_strides.size(), 1);
  constexpr size_t kStrides = 48;
  const size_t tail = kStrides + operands * kMostOuter * 8;
  std::vector<std::byte> out((tail + operands * 4 + 7) / 8 * 8);
  const auto put = [&](size_t at, auto value) {
    std::memcpy(out.data() + at, &value, sizeof value);
  };
  put(0, count);
  put(8, static_cast<uint32_t>(inner_size));
  put(12, static_cast<int32_t>(outer_sizes.size()));
  for (size_t axis = 0; axis < outer_sizes.size(); ++axis)
    put(16 + axis * 4, static_cast<uint32_t>(outer_sizes[axis]));
  for (size_t k = 0; k < outer_strides.size(); ++k) {
    for (size_t axis = 0; axis < outer_sizes.size(); ++axis)
      put(kStrides + (k * kMostOuter + axis) * 8, outer_strides[k][axis]);
    put(tail + k * 4, inner[k]);
  }
  return out;
}

}  // namespace dais
