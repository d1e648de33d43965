// Conversions between f32 and 8-bit numbers with one scale, and the maximum of rows of bytes.

#include "backends/cpu/byte_store.h"

namespace dais::DAIS_ISA {

/// y = clamp(round(x / scale) + zero), halves to even.
void quantise_bytes(const float* x, int64_t count, float scale, int32_t zero, bool is_signed,
                    uint8_t* y) {
  const auto low = static_cast<float>((is_signed ? -128 : 0) - zero);
  const auto high = static_cast<float>((is_signed ? 127 : 255) - zero);
#if DAIS_ISA_LEVEL >= 2
  const __m512i shift = _mm512_set1_epi32(zero);
  for (int64_t i = 0; i < count; i += kLanes) {
    const __mmask16 mask = first_lanes(count - i);
    const Vf value = held(div(_mm512_maskz_loadu_ps(mask, x + i), all(scale)), low, high);
    const __m512i whole_numbers = _mm512_add_epi32(_mm512_cvtps_epi32(value), shift);
    _mm512_mask_cvtepi32_storeu_epi8(y + i, mask, whole_numbers);
  }
#else
  for (int64_t i = 0; i < count; ++i)
    y[i] = static_cast<uint8_t>(static_cast<int32_t>(whole(held(x[i] / scale, low, high))) + zero);
#endif
}

void dequantise_bytes(const uint8_t* x, int64_t count, float scale, int32_t zero, bool is_signed,
                      float* y) {
  if (is_signed)
    for (int64_t i = 0; i < count; ++i)
      y[i] = static_cast<float>(static_cast<int32_t>(static_cast<int8_t>(x[i])) - zero) * scale;
  else
    for (int64_t i = 0; i < count; ++i)
      y[i] = static_cast<float>(static_cast<int32_t>(x[i]) - zero) * scale;
}

/// Widens [low, high] by the values. NaN leaves it as it is.
void range_of(const float* x, int64_t count, float* low, float* high) {
  Vf lows[4], highs[4];
  for (int j = 0; j < 4; ++j) {
    lows[j] = all(*low);
    highs[j] = all(*high);
  }
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes)
    for (int j = 0; j < 4; ++j) {
      const Vf value = load(x + i + j * kLanes);
      lows[j] = min(value, lows[j]);
      highs[j] = max(value, highs[j]);
    }
  for (; i < count; ++i) {
    *low = x[i] < *low ? x[i] : *low;
    *high = x[i] > *high ? x[i] : *high;
  }
  const Vf high_of_all = max(max(highs[0], highs[1]), max(highs[2], highs[3]));
  const Vf low_of_all = min(min(lows[0], lows[1]), min(lows[2], lows[3]));
  const float least = -largest(sub(all(0), low_of_all)), most = largest(high_of_all);
  *low = least < *low ? least : *low;
  *high = most > *high ? most : *high;
}

namespace {
template <typename T>
void largest_of(const T* const* rows, int64_t taps, int64_t width, T* y) {
  for (int64_t c = 0; c < width; ++c) y[c] = rows[0][c];
  for (int64_t t = 1; t < taps; ++t) {
    const T* row = rows[t];
    for (int64_t c = 0; c < width; ++c) y[c] = row[c] > y[c] ? row[c] : y[c];
  }
}
}  // namespace

/// The largest of `taps` rows of bytes, element by element.
void largest_bytes(const uint8_t* const* rows, int64_t taps, int64_t width, bool is_signed,
                   uint8_t* y) {
  if (is_signed)
    largest_of(reinterpret_cast<const int8_t* const*>(rows), taps, width,
               reinterpret_cast<int8_t*>(y));
  else
    largest_of(rows, taps, width, y);
}

}  // namespace dais::DAIS_ISA
