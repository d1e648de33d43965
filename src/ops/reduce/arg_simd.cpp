// Positions of the greatest or least number, along rows and across them. The first NaN beats every
// number. The least is the greatest of what is negated.

#include <cstdint>

#if DAIS_ISA_LEVEL < 3
namespace dais::DAIS_ISA {
namespace {

constexpr int kLanes = 16;

int64_t first_nan(const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (x[i] != x[i]) return i;
  return n;
}

template <bool last>
bool beats(float a, float b) {
  return last ? a >= b : a > b;
}

template <bool last>
int64_t along(const float* x, int64_t n, float sign) {
  float best[kLanes];
  int32_t round[kLanes];
  int odd = 0;
  for (int k = 0; k < kLanes; ++k) {
    best[k] = -__builtin_inff();
    round[k] = -1;
  }
  const int64_t rounds = n / kLanes;
  for (int64_t i = 0; i < rounds; ++i)
    for (int k = 0; k < kLanes; ++k) {
      const float value = sign * x[i * kLanes + k];
      const bool better = beats<last>(value, best[k]);
      best[k] = better ? value : best[k];
      round[k] = better ? static_cast<int32_t>(i) : round[k];
      odd |= value != value;
    }
  for (int64_t i = rounds * kLanes; i < n; ++i) odd |= x[i] != x[i];
  if (odd) return first_nan(x, n);
  int64_t at = -1;
  float top = -__builtin_inff();
  const auto offer = [&](float value, int64_t place) {
    const bool earlier = last ? place > at : place < at;
    if (at >= 0 && !(value > top) && !(value == top && earlier)) return;
    top = value;
    at = place;
  };
  for (int k = 0; k < kLanes; ++k)
    if (round[k] >= 0) offer(best[k], int64_t{round[k]} * kLanes + k);
  for (int64_t i = rounds * kLanes; i < n; ++i) offer(sign * x[i], i);
  // Nothing beats minus infinity when it is all there is.
  return !last && top == -__builtin_inff() ? 0 : at;
}

template <bool last>
void across(const float* x, int64_t n, int64_t stride, int64_t width, float sign, float* best,
            int32_t* at) {
  for (int64_t i = 0; i < width; ++i) {
    best[i] = sign * x[i];
    at[i] = 0;
  }
  for (int64_t k = 1; k < n; ++k) {
    x += stride;
    for (int64_t i = 0; i < width; ++i) {
      const float value = sign * x[i], top = best[i];
      const int better = static_cast<int>(beats<last>(value, top)) |
                         (static_cast<int>(value != value) & static_cast<int>(top == top));
      best[i] = better ? value : top;
      at[i] = better ? static_cast<int32_t>(k) : at[i];
    }
  }
}

}  // namespace

int64_t arg_along(const float* x, int64_t n, bool least, bool last) {
  const float sign = least ? -1.0F : 1.0F;
  return last ? along<true>(x, n, sign) : along<false>(x, n, sign);
}

void arg_across(const float* x, int64_t n, int64_t stride, int64_t width, bool least, bool last,
                float* best, int32_t* at) {
  const float sign = least ? -1.0F : 1.0F;
  return last ? across<true>(x, n, stride, width, sign, best, at)
              : across<false>(x, n, stride, width, sign, best, at);
}

}  // namespace dais::DAIS_ISA
#endif
