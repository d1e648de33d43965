#pragma once

#include "float8.cuh"
#include "scalar.cuh"

// The other types that take a byte in memory: floats without a negative zero (fnuz), the scale type
// e8m0, floats of 4 bits and integers of 4 and 2.

struct f8e4m3fnuz {
  uint8 bits;
};
struct f8e5m2fnuz {
  uint8 bits;
};
struct f8e8m0 {
  uint8 bits;
};
struct f4e2m1 {
  uint8 bits;
};
/// The low bits of an integer, extended by its sign to a byte.
template <int width, bool has_sign>
struct SmallWhole {
  uint8 bits;

  __device__ __forceinline__ static SmallWhole of(int64 number) {
    const uint32 low = static_cast<uint32>(number) & ((1u << width) - 1);
    const bool negative = has_sign && low >> (width - 1) != 0;
    return {static_cast<uint8>(negative ? low | ~((1u << width) - 1) : low)};
  }
  __device__ __forceinline__ int64 number() const {
    return has_sign ? int64(static_cast<int8>(bits)) : int64(bits);
  }
};
using i4 = SmallWhole<4, true>;
using u4 = SmallWhole<4, false>;
using i2 = SmallWhole<2, true>;
using u2 = SmallWhole<2, false>;

/// As bits of a float these are 2^(127 - bias) times too small, their subnormal numbers, too.
__device__ __forceinline__ float to_float(f8e4m3fnuz x) {
  if (x.bits == 0x80u) return __uint_as_float(0x7fc00000u);
  const uint32 sign = x.bits & 0x80u, magnitude = x.bits & 0x7fu;
  return __uint_as_float(sign << 24 | magnitude << 20) * 0x1p119f;
}
__device__ __forceinline__ float to_float(f8e5m2fnuz x) {
  if (x.bits == 0x80u) return __uint_as_float(0x7fc00000u);
  const uint32 sign = x.bits & 0x80u, magnitude = x.bits & 0x7fu;
  return __uint_as_float(sign << 24 | magnitude << 21) * 0x1p111f;
}
__device__ __forceinline__ float to_float(f4e2m1 x) {
  const uint32 sign = x.bits & 8u, magnitude = x.bits & 7u;
  return __uint_as_float(sign << 28 | magnitude << 22) * 0x1p126f;
}
/// 2^(bits - 127), of which the least is a subnormal float.
__device__ __forceinline__ float to_float(f8e8m0 x) {
  if (x.bits == 0xffu) return __uint_as_float(0x7fc00000u);
  return __uint_as_float(x.bits == 0 ? 0x400000u : static_cast<uint32>(x.bits) << 23);
}

/// Formats whose pattern of a negative zero is NaN, which is also what is too large.
template <int mantissa, int bias>
__device__ __forceinline__ uint8 unsigned_zero_bits(float x, int saturate) {
  const uint8 code = small_bits<mantissa, bias>(fabsf(x), 0x7f, 0x80, 0x80, saturate);
  return code == 0 || code == 0x80 || x > 0 ? code : static_cast<uint8>(code | 0x80u);
}
template <>
__device__ __forceinline__ f8e4m3fnuz code_of<f8e4m3fnuz>(float x, int saturate) {
  return {unsigned_zero_bits<3, 8>(x, saturate)};
}
template <>
__device__ __forceinline__ f8e5m2fnuz code_of<f8e5m2fnuz>(float x, int saturate) {
  return {unsigned_zero_bits<2, 16>(x, saturate)};
}
/// Has no infinity and no NaN, which becomes -0.
template <>
__device__ __forceinline__ f4e2m1 code_of<f4e2m1>(float x, int saturate) {
  if (x != x) return {8};
  const uint32 sign = __float_as_uint(x) >> 28 & 8u;
  return {static_cast<uint8>(sign | small_bits<1, 1>(fabsf(x), 7, 7, 0, saturate))};
}

enum class ScaleRounding { up, down, nearest };

/// The power of two beside a float's magnitude.
__device__ __forceinline__ f8e8m0 scale_of(float x, int saturate, ScaleRounding rounding) {
  const uint32 word = __float_as_uint(x) & 0x7fffffffu;
  if (word > 0x7f800000u) return {0xff};
  const uint32 exponent = word >> 23, fraction = word & 0x7fffffu;
  // Below 2^-126 the distances of neighbours are those of subnormal floats.
  bool up = false;
  if (rounding == ScaleRounding::up) up = fraction > (exponent == 0 ? 0x400000u : 0u);
  if (rounding == ScaleRounding::nearest) up = fraction >= (exponent == 0 ? 0x600000u : 0x400000u);
  if (exponent == 0xffu || (exponent == 0xfeu && up)) return {static_cast<uint8>(saturate ? 0xfe : 0xff)};
  return {static_cast<uint8>(exponent + (up ? 1 : 0))};
}
