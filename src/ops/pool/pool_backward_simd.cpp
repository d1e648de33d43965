// Gradients of pooling, one run of elements at a time: the channels of one place, or neighbouring
// places of one plane. Bound by memory.

#include <cstdint>

namespace dais::DAIS_ISA {

/// Elements equal to the maximum take what is left of dy: the first one of each window all of it.
void max_pool_spread(const float* x, int64_t step, const float* y, float* left, float* dx,
                     int64_t count) {
  if (step == 1) {
    for (int64_t i = 0; i < count; ++i) {
      const float share = x[i] == y[i] ? left[i] : 0.0F;
      dx[i] += share;
      left[i] -= share;
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const float share = x[i * step] == y[i] ? left[i] : 0.0F;
    dx[i * step] += share;
    left[i] -= share;
  }
}

void average_pool_spread(const float* dy, float* dx, int64_t step, int64_t count) {
  if (step == 1)
    for (int64_t i = 0; i < count; ++i) dx[i] += dy[i];
  else
    for (int64_t i = 0; i < count; ++i) dx[i * step] += dy[i];
}

}  // namespace dais::DAIS_ISA
