// Softmax and its logarithm over f32: largest value, exponentials and their sum, division. Rows of
// adjacent elements are walked by vectors; where other axes lie inside, neighbouring rows share a
// vector. Bound by the polynomial of exp, about ten instructions a vector.

#include "backends/cpu/simd.h"

namespace dais::DAIS_ISA {
namespace {

float row_max(const float* x, int64_t size) {
  Vf top = all(-__builtin_inff());
  int64_t i = 0;
  // A NaN may be passed over here; the sum of exponentials keeps it.
  for (; i + kLanes <= size; i += kLanes) top = max(load(x + i), top);
  float result = largest(top);
  for (; i < size; ++i) result = x[i] > result ? x[i] : result;
  return result;
}

/// The sum of exp(x - top); `keep` writes the terms to y.
template <bool keep>
float row_exp(const float* x, int64_t size, float top, float* y) {
  const Vf shift = all(top);
  Vf sums = all(0);
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const Vf e = exp(sub(load(x + i), shift));
    if (keep) store(y + i, e);
    sums = add(sums, e);
  }
  float total = sum(sums);
  if (i < size) {
    alignas(64) float lanes[kLanes];
    store(lanes, exp(sub(load_first(x + i, size - i), shift)));
    for (int64_t k = 0; i + k < size; ++k) {
      if (keep) y[i + k] = lanes[k];
      total += lanes[k];
    }
  }
  return total;
}

void softmax_row(const float* x, int64_t size, float* y) {
  const float factor = 1 / row_exp<true>(x, size, row_max(x, size), y);
  for (int64_t i = 0; i < size; i += kLanes)
    store_first(y + i, mul(load_first(y + i, size - i), all(factor)), size - i);
}

void log_softmax_row(const float* x, int64_t size, float* y) {
  const float top = row_max(x, size);
  // Nothing is written before the last reading: y may be x.
  const float shift = __builtin_logf(row_exp<false>(x, size, top, nullptr));
  for (int64_t i = 0; i < size; i += kLanes)
    store_first(y + i, sub(sub(load_first(x + i, size - i), all(top)), all(shift)), size - i);
}

/// Neighbouring rows at once: elements of a row are `step` apart.
void softmax_columns(const float* x, int64_t size, int64_t step, int64_t count, bool logarithm,
                     float* y) {
  Vf top = all(-__builtin_inff()), sums = all(0);
  for (int64_t k = 0; k < size; ++k) top = max(load_first(x + k * step, count), top);
  for (int64_t k = 0; k < size; ++k) {
    const Vf e = exp(sub(load_first(x + k * step, count), top));
    if (!logarithm) store_first(y + k * step, e, count);
    sums = add(sums, e);
  }
  if (logarithm) {
    alignas(64) float lanes[kLanes];
    store(lanes, sums);
    for (int i = 0; i < kLanes; ++i) lanes[i] = __builtin_logf(lanes[i]);
    const Vf shift = load(lanes);
    for (int64_t k = 0; k < size; ++k)
      store_first(y + k * step, sub(sub(load_first(x + k * step, count), top), shift), count);
    return;
  }
  const Vf factor = div(all(1), sums);
  for (int64_t k = 0; k < size; ++k)
    store_first(y + k * step, mul(load_first(y + k * step, count), factor), count);
}

}  // namespace

/// `outer` blocks of [size, inner]; rows run along `size`. x may be y.
void softmax_blocks(const float* x, int64_t outer, int64_t size, int64_t inner, bool logarithm,
                    float* y) {
  for (int64_t o = 0; o < outer; ++o, x += size * inner, y += size * inner) {
    if (inner > 1) {
      for (int64_t i = 0; i < inner; i += kLanes)
        softmax_columns(x + i, size, inner, inner - i, logarithm, y + i);
    } else if (logarithm) {
      log_softmax_row(x, size, y);
    } else {
      softmax_row(x, size, y);
    }
  }
}

}  // namespace dais::DAIS_ISA
