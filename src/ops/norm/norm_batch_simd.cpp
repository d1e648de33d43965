// Sums and linear maps per channel of f32 activations, for batch normalisation while training.
// Rows of adjacent channels (channels-last), or planes of one channel (row-major). Sums are of
// differences to a value near the mean, so that squares keep their digits. Bound by memory.

#include <cstdint>

#include "backends/cpu/simd.h"

namespace dais::DAIS_ISA {

/// sum += x - near, squares += (x - near)^2 for each channel, over rows.
void batch_sums(const float* x, const float* near, int64_t rows, int64_t channels, float* sum,
                float* squares) {
  for (int64_t row = 0; row < rows; ++row, x += channels)
    for (int64_t c = 0; c < channels; ++c) {
      const float d = x[c] - near[c];
      sum[c] += d;
      squares[c] += d * d;
    }
}

/// sum += dy, products += dy * (x - mean).
void batch_products(const float* dy, const float* x, const float* mean, int64_t rows,
                    int64_t channels, float* sum, float* products) {
  for (int64_t row = 0; row < rows; ++row, x += channels, dy += channels)
    for (int64_t c = 0; c < channels; ++c) {
      sum[c] += dy[c];
      products[c] += dy[c] * (x[c] - mean[c]);
    }
}

/// y = (x - mean) * a + b.
void batch_scale(const float* x, const float* mean, const float* a, const float* b, int64_t rows,
                 int64_t channels, float* y) {
  for (int64_t row = 0; row < rows; ++row, x += channels, y += channels)
    for (int64_t c = 0; c < channels; ++c) y[c] = (x[c] - mean[c]) * a[c] + b[c];
}

/// dx = (dy - k) * a - (x - mean) * b.
void batch_slopes(const float* dy, const float* x, const float* mean, const float* a,
                  const float* b, const float* k, int64_t rows, int64_t channels, float* dx) {
  for (int64_t row = 0; row < rows; ++row, x += channels, dy += channels, dx += channels)
    for (int64_t c = 0; c < channels; ++c) dx[c] = (dy[c] - k[c]) * a[c] - (x[c] - mean[c]) * b[c];
}

// The same for one plane of one channel: numbers instead of rows of them.

void plane_sums(const float* x, float near, int64_t count, float* sum, float* squares) {
  Vf totals = all(0), powers = all(0);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Vf d = sub(load(x + i), all(near));
    totals = add(totals, d);
    powers = add(powers, mul(d, d));
  }
  *sum += dais::DAIS_ISA::sum(totals);
  *squares += dais::DAIS_ISA::sum(powers);
  for (; i < count; ++i) {
    *sum += x[i] - near;
    *squares += (x[i] - near) * (x[i] - near);
  }
}

void plane_products(const float* dy, const float* x, float mean, int64_t count, float* sum,
                    float* products) {
  Vf totals = all(0), powers = all(0);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Vf d = load(dy + i);
    totals = add(totals, d);
    powers = add(powers, mul(d, sub(load(x + i), all(mean))));
  }
  *sum += dais::DAIS_ISA::sum(totals);
  *products += dais::DAIS_ISA::sum(powers);
  for (; i < count; ++i) {
    *sum += dy[i];
    *products += dy[i] * (x[i] - mean);
  }
}

void plane_scale(const float* x, float mean, float a, float b, int64_t count, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = (x[i] - mean) * a + b;
}

void plane_slopes(const float* dy, const float* x, float mean, float a, float b, float k,
                  int64_t count, float* dx) {
  for (int64_t i = 0; i < count; ++i) dx[i] = (dy[i] - k) * a - (x[i] - mean) * b;
}

}  // namespace dais::DAIS_ISA
