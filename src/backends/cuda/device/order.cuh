#pragma once

#include "number.cuh"

/// The bits of a number in the order of numbers: zeros are equal, NaN is above all.
__device__ __forceinline__ uint32 ordered(float value) {
  if (value != value) return 0xffffffffu;
  const uint32 bits = __float_as_uint(value == 0 ? 0.0f : value);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ uint32 ordered(f16 value) { return ordered(to_float(value)); }
__device__ __forceinline__ uint32 ordered(bf16 value) { return ordered(to_float(value)); }
__device__ __forceinline__ uint32 ordered(int32 value) {
  return static_cast<uint32>(value) ^ 0x80000000u;
}
