#pragma once

#include "number.cuh"

// Floats of 8 bits as ONNX and the matrix instruction of compute capability 8.9 have them: e4m3 (no
// infinity, NaN where all bits are set) and e5m2 (the upper half of an f16).

struct f8e4m3 {
  uint8 bits;
};
struct f8e5m2 {
  uint8 bits;
};

__device__ __forceinline__ float to_float(f8e5m2 x) {
  return to_float(f16{static_cast<uint16>(x.bits << 8)});
}

/// As bits of an f16 it is 2^8 times too small, its subnormal numbers, too.
__device__ __forceinline__ float to_float(f8e4m3 x) {
  const uint32 sign = x.bits & 0x80u, magnitude = x.bits & 0x7fu;
  if (magnitude == 0x7fu) return __uint_as_float(sign << 24 | 0x7fc00000u);
  return to_float(f16{static_cast<uint16>(sign << 8 | magnitude << 7)}) * 256.0f;
}

/// The bits of the nearest number of a format with that mantissa and bias, ties to even. Beyond
/// `most` it is that when `saturate` is set, else `beyond`.
template <int mantissa, int bias>
__device__ __forceinline__ uint8 small_bits(float x, uint32 most, uint32 beyond, uint32 nan,
                                            int saturate) {
  const uint32 bits = __float_as_uint(x), sign = bits >> 24 & 0x80u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint8>(sign | nan);
  constexpr int kDrop = 23 - mantissa;
  constexpr uint32 kLeastNormal = (127u + 1 - bias) << 23;
  // The unit in the last place of this number is that of the format's subnormal numbers.
  constexpr uint32 kUnit = (127u + 23 + 1 - bias - mantissa) << 23;
  const uint32 tiny = __float_as_uint(__uint_as_float(magnitude) + __uint_as_float(kUnit)) - kUnit;
  const uint32 rounded = (magnitude + (1u << (kDrop - 1)) - 1 + (magnitude >> kDrop & 1u)) >> kDrop;
  const uint32 code =
      magnitude < kLeastNormal ? tiny : rounded - (static_cast<uint32>(127 - bias) << mantissa);
  return static_cast<uint8>(sign | (code > most ? (saturate ? most : beyond) : code));
}

/// A float as a code, rounded to nearest.
template <typename Code>
__device__ __forceinline__ Code code_of(float x, int saturate);
template <>
__device__ __forceinline__ f8e4m3 code_of<f8e4m3>(float x, int saturate) {
  return {small_bits<3, 7>(x, 0x7e, 0x7f, 0x7f, saturate)};
}
template <>
__device__ __forceinline__ f8e5m2 code_of<f8e5m2>(float x, int saturate) {
  return {small_bits<2, 15>(x, 0x7b, 0x7c, 0x7e, saturate)};
}
