#pragma once

#include <cstdint>

#include "base/isa.h"

namespace dais {

/// Sizes and parameters of one normalisation across channels, f32.
struct LrnSizes {
  int64_t channels = 1, cells = 1;  ///< of one example
  int64_t before = 0, after = 0;    ///< neighbours on either side
  float share = 0, bias = 1, beta = 0.75f;
};

struct LrnLoops {
  /// One cell's channels, next to each other. `squares` has room for channels + before + after
  /// values.
  void (*cell)(const LrnSizes& sizes, const float* x, float* y, float* squares);
  /// `count` neighbouring cells of every channel, row-major planes.
  void (*planes)(const LrnSizes& sizes, const float* x, float* y, int64_t count);
};
const LrnLoops& lrn_loops(Isa isa);

}  // namespace dais
