// Layer and root-mean-square normalisation of f32 rows: sums, then one pass that writes. A row
// stays in the first-level cache between the passes; bound by memory. Four partial sums per row
// hide the latency of additions.

#include "backends/cpu/simd.h"

namespace dais::DAIS_ISA {
namespace {

constexpr int kSums = 4;

/// Sum of f(x) over a row.
template <typename F>
float row_sum(const float* x, int64_t size, F f) {
  Vf sums[kSums] = {all(0), all(0), all(0), all(0)};
  int64_t i = 0;
  for (; i + kSums * kLanes <= size; i += kSums * kLanes)
    for (int s = 0; s < kSums; ++s) sums[s] = f(load(x + i + s * kLanes), sums[s]);
  for (; i + kLanes <= size; i += kLanes) sums[0] = f(load(x + i), sums[0]);
  float total = sum(add(add(sums[0], sums[1]), add(sums[2], sums[3])));
  for (; i < size; ++i) {
    alignas(64) float lanes[kLanes];
    store(lanes, f(all(x[i]), all(0)));
    total += lanes[0];
  }
  return total;
}

/// y = (x - mean) * inverse * scale + bias; bias may be null.
void write_row(const float* x, int64_t size, float mean, float inverse, const float* scale,
               const float* bias, float* y) {
  const Vf middle = all(mean), factor = all(inverse);
  for (int64_t i = 0; i < size; i += kLanes) {
    const int64_t count = size - i;
    Vf v = mul(mul(sub(load_first(x + i, count), middle), factor), load_first(scale + i, count));
    if (bias) v = add(v, load_first(bias + i, count));
    store_first(y + i, v, count);
  }
}

}  // namespace

/// Rows of `size` elements. bias, means and inverses may be null.
void layer_norm_rows(const float* x, int64_t rows, int64_t size, float epsilon, const float* scale,
                     const float* bias, float* y, float* means, float* inverses) {
  for (int64_t row = 0; row < rows; ++row, x += size, y += size) {
    const float mean =
        row_sum(x, size, [](Vf v, Vf s) { return add(s, v); }) / static_cast<float>(size);
    const Vf middle = all(mean);
    const float squares = row_sum(x, size, [middle](Vf v, Vf s) {
      const Vf d = sub(v, middle);
      return fma(d, d, s);
    });
    const float inverse = 1 / __builtin_sqrtf(squares / static_cast<float>(size) + epsilon);
    write_row(x, size, mean, inverse, scale, bias, y);
    if (means) means[row] = mean;
    if (inverses) inverses[row] = inverse;
  }
}

/// The same without the mean.
void rms_norm_rows(const float* x, int64_t rows, int64_t size, float epsilon, const float* scale,
                   float* y, float* inverses) {
  for (int64_t row = 0; row < rows; ++row, x += size, y += size) {
    const float squares = row_sum(x, size, [](Vf v, Vf s) { return fma(v, v, s); });
    const float inverse = 1 / __builtin_sqrtf(squares / static_cast<float>(size) + epsilon);
    write_row(x, size, 0, inverse, scale, nullptr, y);
    if (inverses) inverses[row] = inverse;
  }
}

/// Gradients of layer_norm_rows with d = dy * scale and n = (x - mean) * inverse:
/// dx = inverse * (d - mean(d) - n * mean(d * n)). dy * n and dy are added to `dscale` and `dbias`.
void layer_norm_back_rows(const float* dy, const float* x, const float* scale, const float* means,
                          const float* inverses, int64_t rows, int64_t size, float* dx,
                          float* dscale, float* dbias) {
  for (int64_t row = 0; row < rows; ++row, dy += size, x += size, dx += size) {
    const Vf mean = all(means[row]), inverse = all(inverses[row]);
    Vf sums = all(0), products = all(0);
    for (int64_t i = 0; i < size; i += kLanes) {
      const int64_t count = size - i;
      const Vf d = mul(load_first(dy + i, count), load_first(scale + i, count));
      sums = add(sums, d);
      products = fma(d, mul(sub(load_first(x + i, count), mean), inverse), products);
    }
    const auto number = static_cast<float>(size);
    const Vf middle = all(sum(sums) / number), slope = all(sum(products) / number);
    for (int64_t i = 0; i < size; i += kLanes) {
      const int64_t count = size - i;
      const Vf given = load_first(dy + i, count);
      const Vf normal = mul(sub(load_first(x + i, count), mean), inverse);
      const Vf d = mul(given, load_first(scale + i, count));
      store_first(dx + i, mul(inverse, sub(sub(d, middle), mul(normal, slope))), count);
      store_first(dscale + i, fma(given, normal, load_first(dscale + i, count)), count);
      store_first(dbias + i, add(given, load_first(dbias + i, count)), count);
    }
  }
}

}  // namespace dais::DAIS_ISA
