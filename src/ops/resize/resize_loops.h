#pragma once

#include <cstdint>

#include "base/isa.h"

namespace dais {

/// Weighted sums of f32 data, the same number of taps for each result. Taps of weight 0 are left
/// out, so that infinities elsewhere do no harm.
struct ResizeLoops {
  /// out[i] = Σ weights[k] * rows[k][i] for `n` elements; there is at least one row.
  void (*rows)(const float* const* rows, const float* weights, int64_t taps, int64_t n, float* out);
  /// out[i] = Σ weights[k * n + i] * x[index[k * n + i]].
  void (*along)(const float* x, const int32_t* index, const float* weights, int64_t taps, int64_t n,
                float* out);
};

const ResizeLoops& resize_loops(Isa isa);

}  // namespace dais
