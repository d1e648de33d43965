#pragma once

#include "backends/cpu/byte_block.h"
#include "backends/cpu/simd.h"

/// What happens to 16 neighbouring sums of one row before they are stored. For _simd.cpp files.
namespace dais::DAIS_ISA {

using ByteOut = cpu::ByteGemm::Out;

/// To the nearest whole number, halves to even, for |x| < 2^22.
inline float whole(float x) {
  constexpr float magic = 12582912.0f;
  return (x + magic) - magic;
}
inline float held(float x, float low, float high) {
  x = x > low ? x : low;
  return x < high ? x : high;
}

#if DAIS_ISA_LEVEL >= 2

inline Vf held(Vf x, float low, float high) { return min(max(x, all(low)), all(high)); }
inline Vf residual_of(const cpu::ByteGemm& g, const uint8_t* from, __mmask16 mask) {
  const __m128i bytes = _mm_maskz_loadu_epi8(mask, from);
  const __m512i wide =
      g.residual_signed ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes);
  const __m512i centred = _mm512_sub_epi32(wide, _mm512_set1_epi32(g.residual_zero));
  return mul(_mm512_cvtepi32_ps(centred), all(g.residual_scale));
}

/// Sums of rows [0, rows) of one panel, `stride` apart, to C at (row, column).
template <ByteOut out, bool residual>
void store_panel(const cpu::ByteGemm& g, const int32_t* sums, int64_t stride, int64_t row,
                 int64_t rows, int64_t column) {
  const int64_t left = g.columns - column;
  const __mmask16 mask = first_lanes(left);
  const __m512i offset = _mm512_loadu_si512(g.offset + column);
  const Vf scale = out == ByteOut::i32 ? Vf{} : load(g.scales + column);
  const Vf bias = out == ByteOut::f32 && g.bias ? load_first(g.bias + column, left) : all(0);
  const __m512i zero = _mm512_set1_epi32(g.zero);
  for (int64_t r = 0; r < rows; ++r) {
    __m512i sum = _mm512_add_epi32(_mm512_loadu_si512(sums + r * stride), offset);
    if (g.row_sums)
      sum = _mm512_sub_epi32(sum, _mm512_mullo_epi32(_mm512_set1_epi32(g.row_sums[row + r]),
                                                     _mm512_loadu_si512(g.b_zeros + column)));
    const int64_t at = (row + r) * g.c_row + column;
    if constexpr (out == ByteOut::i32) {
      _mm512_mask_storeu_epi32(static_cast<int32_t*>(g.c) + at, mask, sum);
    } else {
      Vf value = mul(_mm512_cvtepi32_ps(sum), scale);
      if constexpr (out == ByteOut::f32) {
        _mm512_mask_storeu_ps(static_cast<float*>(g.c) + at, mask, add(value, bias));
      } else {
        value = held(value, g.low, g.high);
        if constexpr (residual) {
          value = fma(round_even(value), all(g.own_scale), residual_of(g, g.residual + at, mask));
          value = held(value, g.sum_low, g.sum_high);
        }
        const __m512i bytes = _mm512_add_epi32(_mm512_cvtps_epi32(value), zero);
        _mm512_mask_cvtepi32_storeu_epi8(static_cast<uint8_t*>(g.c) + at, mask, bytes);
      }
    }
  }
}

#else

template <ByteOut out, bool residual>
void store_panel(const cpu::ByteGemm& g, const int32_t* sums, int64_t stride, int64_t row,
                 int64_t rows, int64_t column) {
  const int64_t left = g.columns - column;
  const int64_t count = left < cpu::kBytePanel ? left : cpu::kBytePanel;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = (row + r) * g.c_row + column;
    int32_t row_sums[cpu::kBytePanel];
    for (int64_t i = 0; i < cpu::kBytePanel; ++i)
      row_sums[i] = static_cast<int32_t>(static_cast<uint32_t>(sums[r * stride + i]) +
                                         static_cast<uint32_t>(g.offset[column + i]));
    if (g.row_sums)
      for (int64_t i = 0; i < cpu::kBytePanel; ++i)
        row_sums[i] = static_cast<int32_t>(static_cast<uint32_t>(row_sums[i]) -
                                           static_cast<uint32_t>(g.row_sums[row + r]) *
                                               static_cast<uint32_t>(g.b_zeros[column + i]));
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (out == ByteOut::i32) {
        static_cast<int32_t*>(g.c)[at + i] = row_sums[i];
        continue;
      }
      float value = static_cast<float>(row_sums[i]);
      if constexpr (out != ByteOut::i32) value *= g.scales[column + i];
      if constexpr (out == ByteOut::f32) {
        static_cast<float*>(g.c)[at + i] = value + (g.bias ? g.bias[column + i] : 0);
        continue;
      }
      value = whole(held(value, g.low, g.high));
      if constexpr (residual) {
        const int32_t byte = g.residual_signed
                                 ? static_cast<int32_t>(static_cast<int8_t>(g.residual[at + i]))
                                 : static_cast<int32_t>(g.residual[at + i]);
        value = value * g.own_scale + static_cast<float>(byte - g.residual_zero) * g.residual_scale;
        value = whole(held(value, g.sum_low, g.sum_high));
      }
      if constexpr (out == ByteOut::u8 || out == ByteOut::i8)
        static_cast<uint8_t*>(g.c)[at + i] =
            static_cast<uint8_t>(static_cast<int32_t>(value) + g.zero);
    }
  }
}

#endif

/// The same for whatever kind of result `g` asks for.
inline void store_sums(const cpu::ByteGemm& g, const int32_t* sums, int64_t stride, int64_t row,
                       int64_t rows, int64_t column) {
  switch (g.out) {
    case ByteOut::i32: return store_panel<ByteOut::i32, false>(g, sums, stride, row, rows, column);
    case ByteOut::f32: return store_panel<ByteOut::f32, false>(g, sums, stride, row, rows, column);
    case ByteOut::u8:
    case ByteOut::i8:
      if (g.residual)
        store_panel<ByteOut::u8, true>(g, sums, stride, row, rows, column);
      else
        store_panel<ByteOut::u8, false>(g, sums, stride, row, rows, column);
  }
}

}  // namespace dais::DAIS_ISA
