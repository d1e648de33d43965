// Normalisation across channels. The usual exponent 3/4 needs two square roots and a division per
// vector, which bound it; other exponents go through the scalar power function.

#include "ops/lanes.h"
#include "ops/lrn/lrn_loops.h"

namespace dais::DAIS_ISA {
namespace {

Lanes square_root(Lanes x) {
#if DAIS_ISA_LEVEL >= 2
  return _mm512_sqrt_ps(x);
#elif DAIS_ISA_LEVEL == 1
  return _mm256_sqrt_ps(x);
#else
  for (int64_t i = 0; i < kLanes; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}

Lanes scaled(const LrnSizes& s, Lanes x, Lanes sum) {
  Lanes base = splat(s.bias) + splat(s.share) * sum;
  if (s.beta == 0.75f) {
    const Lanes root = square_root(base);
    return x / (root * square_root(root));
  }
  for (int64_t i = 0; i < kLanes; ++i) base[i] = __builtin_powf(base[i], s.beta);
  return x / base;
}

}  // namespace

void cell(const LrnSizes& s, const float* x, float* y, float* squares) {
  for (int64_t c = 0; c < s.before; ++c) squares[c] = 0;
  float* own = squares + s.before;
  for (int64_t c = 0; c < s.channels; ++c) own[c] = x[c] * x[c];
  for (int64_t c = 0; c < s.after; ++c) own[s.channels + c] = 0;
  const int64_t window = s.before + 1 + s.after;
  int64_t c = 0;
  for (; c + kLanes <= s.channels; c += kLanes) {
    Lanes sum = load(squares + c);
    for (int64_t k = 1; k < window; ++k) sum = sum + load(squares + c + k);
    store(y + c, scaled(s, load(x + c), sum));
  }
  if (c == s.channels) return;
  const int64_t rest = s.channels - c;
  Lanes sum{};
  for (int64_t k = 0; k < window; ++k) sum = sum + load_part(squares + c + k, rest);
  store_part(y + c, scaled(s, load_part(x + c, rest), sum), rest);
}

void planes(const LrnSizes& s, const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t part = count - i < kLanes ? count - i : kLanes;
    for (int64_t c = 0; c < s.channels; ++c) {
      const int64_t low = c < s.before ? 0 : c - s.before;
      const int64_t high = c + s.after < s.channels ? c + s.after : s.channels - 1;
      Lanes sum{};
      for (int64_t k = low; k <= high; ++k) {
        const Lanes value = load_part(x + k * s.cells + i, part);
        sum = sum + value * value;
      }
      store_part(y + c * s.cells + i, scaled(s, load_part(x + c * s.cells + i, part), sum), part);
    }
  }
}

extern const LrnLoops lrn_loops;
const LrnLoops lrn_loops{cell, planes};

}  // namespace dais::DAIS_ISA
