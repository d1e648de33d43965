#pragma once

#include <cstdint>

#include "base/isa.h"

namespace dais {

/// Sums and extremes of f32 data laid out [size, inner], for one outer position. Sums run in double
/// along fixed lanes: the same bits however the work is shared.
enum class FoldKind : uint8_t { sum, sum_square, sum_absolute, max, min };
struct ReduceLoops {
  /// One value from n adjacent elements.
  double (*along)(FoldKind kind, const float* x, int64_t n);
  /// total[i] = fold over k of x[k * stride + i], for `width` columns.
  void (*across)(FoldKind kind, const float* x, int64_t n, int64_t stride, int64_t width,
                 double* total);
};
const ReduceLoops& reduce_loops(Isa isa);

}  // namespace dais
