// Weighted sums of rows, and of single elements found by index.

#include <cstdint>

#if DAIS_ISA_LEVEL < 3
namespace dais::DAIS_ISA {

void blend_rows(const float* const* rows, const float* weights, int64_t taps, int64_t n,
                float* out) {
  const float* a = rows[0];
  const float wa = weights[0];
  if (taps == 1) {
    for (int64_t i = 0; i < n; ++i) out[i] = wa * a[i];
    return;
  }
  const float* b = rows[1];
  const float wb = weights[1];
  if (taps == 4) {
    const float *c = rows[2], *d = rows[3];
    const float wc = weights[2], wd = weights[3];
    for (int64_t i = 0; i < n; ++i) out[i] = wa * a[i] + wb * b[i] + (wc * c[i] + wd * d[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i) out[i] = wa * a[i] + wb * b[i];
  for (int64_t k = 2; k < taps; ++k) {
    const float* row = rows[k];
    const float weight = weights[k];
    for (int64_t i = 0; i < n; ++i) out[i] += weight * row[i];
  }
}

void blend_along(const float* x, const int32_t* index, const float* weights, int64_t taps,
                 int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = 0;
  for (int64_t k = 0; k < taps; ++k, index += n, weights += n)
    for (int64_t i = 0; i < n; ++i) {
      const float product = weights[i] * x[index[i]];
      out[i] += weights[i] == 0 ? 0 : product;
    }
}

}  // namespace dais::DAIS_ISA
#endif
