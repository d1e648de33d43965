#pragma once

#include <array>

#include "ir/tensor.h"

namespace dais {

/// A tensor seen along one axis: `outer` blocks of `size` slices of `inner` adjacent elements.
struct AxisSplit {
  int64_t outer = 1, size = 1, inner = 1;
};
inline AxisSplit split_axis(const Shape& shape, size_t axis) {
  return {shape.elements(0, axis), shape[axis], shape.elements(axis + 1, shape.rank())};
}

/// Steps in elements per axis; zero where an operand repeats, negative where it runs backwards.
using Strides = std::array<int64_t, kMaxRank>;

/// Strides by which a dense tensor of shape `operand` follows the axes of `shape`, to which it
/// broadcasts (aligned at the last axis).
inline Strides broadcast_strides(const Shape& operand, const Shape& shape) {
  DAIS_CHECK(operand.rank() <= shape.rank());
  Strides strides{};
  const size_t lead = shape.rank() - operand.rank();
  int64_t step = 1;
  for (size_t axis = operand.rank(); axis-- > 0;) {
    DAIS_CHECK(operand[axis] == 1 || operand[axis] == shape[lead + axis]);
    strides[lead + axis] = operand[axis] == 1 ? 0 : step;
    step *= operand[axis];
  }
  return strides;
}

/// Visits one iteration space with `count` operands, each with its own strides. Neighbouring axes
/// that all operands walk evenly are merged, so that the innermost loop is as long as it can be:
///
///   const StridedLoop<3> loop(y.shape(), {ys, as, bs});
///   loop.rows([&](const std::array<int64_t, 3>& at) {
///     for (int64_t i = 0; i < loop.size(); ++i)
///       y[at[0] + i * loop.step(0)] = a[at[1] + i * loop.step(1)] + b[at[2] + i * loop.step(2)];
///   });
template <size_t count>
class StridedLoop {
 public:
  using Offsets = std::array<int64_t, count>;

  /// `strides` may index the axes of `shape` only.
  StridedLoop(const Shape& shape, const std::array<Strides, count>& strides) {
    total_ = shape.elements();
    for (size_t axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] == 1) continue;
      bool even = rank_ > 0;
      for (size_t k = 0; k < count && even; ++k)
        even = strides_[k][rank_ - 1] == strides[k][axis] * shape[axis];
      if (!even) sizes_[rank_++] = 1;
      sizes_[rank_ - 1] *= shape[axis];
      for (size_t k = 0; k < count; ++k) strides_[k][rank_ - 1] = strides[k][axis];
    }
    if (rank_ == 0) sizes_[rank_++] = 1;
  }

  /// Dense operands that broadcast to `shape`.
  static StridedLoop broadcast(const Shape& shape,
                               const std::array<const Shape*, count>& operands) {
    std::array<Strides, count> strides;
    for (size_t k = 0; k < count; ++k) strides[k] = broadcast_strides(*operands[k], shape);
    return StridedLoop(shape, strides);
  }

  /// Length of a row and an operand's step within it.
  int64_t size() const { return sizes_[rank_ - 1]; }
  int64_t step(size_t operand) const { return strides_[operand][rank_ - 1]; }
  /// How many rows there are; zero when the space is empty.
  int64_t count_rows() const { return total_ == 0 ? 0 : total_ / size(); }

  /// Calls body(offsets) for every row in row-major order; offsets of its first elements.
  template <typename Body>
  void rows(Body&& body) const {
    rows(0, count_rows(), body);
  }

  /// The same for rows [first, last): threads may share the space.
  template <typename Body>
  void rows(int64_t first, int64_t last, Body&& body) const {
    if (first >= last) return;
    std::array<int64_t, kMaxRank> index{};
    Offsets at{};
    int64_t rest = first;
    for (size_t axis = rank_ - 1; axis-- > 0;) {
      index[axis] = rest % sizes_[axis];
      rest /= sizes_[axis];
      for (size_t k = 0; k < count; ++k) at[k] += index[axis] * strides_[k][axis];
    }
    for (int64_t row = first; row < last; ++row) {
      body(at);
      for (size_t axis = rank_ - 1; axis-- > 0;) {
        const bool carry = ++index[axis] == sizes_[axis];
        if (carry) index[axis] = 0;
        for (size_t k = 0; k < count; ++k)
          at[k] += carry ? -(sizes_[axis] - 1) * strides_[k][axis] : strides_[k][axis];
        if (!carry) break;
      }
    }
  }

 private:
  std::array<int64_t, kMaxRank> sizes_{};
  std::array<Strides, count> strides_{};
  size_t rank_ = 0;
  int64_t total_ = 0;
};

}  // namespace dais
