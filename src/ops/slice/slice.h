#pragma once

#include "ir/op.h"

namespace dais {

/// (data, starts, ends, axes?, steps?): a range of each axis; negative bounds count from the end,
/// bounds beyond it are clamped, steps may be negative but not zero.
struct Slice {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

}  // namespace dais
