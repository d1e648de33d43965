#pragma once

#include <cstdint>

#include "base/isa.h"

namespace dais {

/// A pooling window over up to three spatial axes (missing ones come first, with size 1).
struct PoolSizes {
  int64_t batch = 1, channels = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  int64_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};
  int64_t begin[3] = {0, 0, 0};
  bool average = false;
  /// For averages: 1 over the number of cells that count, for each output position.
  const float* factors = nullptr;
};

/// Raw loops of pooling, f32.
struct PoolLoops {
  /// Output rows [first, last) of batch * out[0] * out[1] rows, channels last.
  void (*rows)(const PoolSizes& sizes, const float* x, float* y, int64_t first, int64_t last);
  /// Planes [first, last) of batch * channels, row-major.
  void (*planes)(const PoolSizes& sizes, const float* x, float* y, int64_t first, int64_t last);
  /// Mean or maximum over `cells` rows of `stride` values, of which `width` are reduced.
  void (*columns)(bool average, const float* x, int64_t cells, int64_t stride, int64_t width,
                  float* y);
  /// Mean or maximum of `cells` neighbouring values.
  float (*plane)(bool average, const float* x, int64_t cells);
};
const PoolLoops& pool_loops(Isa isa);

}  // namespace dais
