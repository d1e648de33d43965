#pragma once

#include "ir/op.h"

namespace dais {

/// (data, starts, ends, axes?, steps?): a range of each axis; negative bounds count from the end,
/// bounds beyond it are clamped, steps may be negative but not zero.
struct Slice {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

/// (dy, sizes: i64 list, starts, ends, axes?, steps?): zeros of the given sizes with dy where a
/// Slice with those bounds reads.
struct SliceBackward {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

}  // namespace dais
