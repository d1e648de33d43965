#pragma once

// Element types of tensors and their conversion to and from float, without any header of a toolkit:
// bits in memory, arithmetic in float. One instruction each where the device has one, and the same
// bits everywhere: rounding is to nearest, ties to even; what is too large becomes infinity, or the
// largest number in formats without infinity.

/// Stands before functions of texts that the CPU shares (ops/*/*.cuh), as base/shared_text.h has it
/// for the CPU.
#define DAIS_SHARED __device__ __forceinline__

using int8 = signed char;
using uint8 = unsigned char;
using int16 = short;
using uint16 = unsigned short;
using int32 = int;
using uint32 = unsigned int;
using int64 = long long;
using uint64 = unsigned long long;

/// What sizes and indices are: tensors on the device have less than 2^31 elements, and the division
/// of 32-bit numbers is several times faster than that of wide ones.
using Size = uint32;

__device__ __forceinline__ float infinity() { return __int_as_float(0x7f800000); }

/// Calls body(i) for each i below `count`, over the threads of a one-dimensional grid: neighbouring
/// threads take neighbours.
template <typename Body>
__device__ __forceinline__ void each_element(Size count, Body body) {
  const Size stride = Size(gridDim.x) * blockDim.x;
  for (Size i = Size(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) body(i);
}

struct f16 {
  uint16 bits;
};
struct bf16 {
  uint16 bits;
};

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(int8 x) { return static_cast<float>(x); }
__device__ __forceinline__ float to_float(uint8 x) { return static_cast<float>(x); }
__device__ __forceinline__ float to_float(int32 x) { return static_cast<float>(x); }
__device__ __forceinline__ float to_float(int64 x) { return static_cast<float>(x); }

__device__ __forceinline__ float to_float(f16 x) {
#ifdef DAIS_EMULATED
  return static_cast<float>(__builtin_bit_cast(_Float16, x.bits));
#else
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
  return wide;
#endif
}

__device__ __forceinline__ float to_float(bf16 x) {
  return __uint_as_float(static_cast<uint32>(x.bits) << 16);
}

__device__ __forceinline__ f16 to_f16(float x) {
#ifdef DAIS_EMULATED
  return {__builtin_bit_cast(uint16, static_cast<_Float16>(x))};
#else
  f16 narrow;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(x));
  return narrow;
#endif
}

__device__ __forceinline__ bf16 to_bf16(float x) {
#if !defined(DAIS_EMULATED) && __CUDA_ARCH__ >= 900
  bf16 narrow;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(x));
  return narrow;
#else
  const uint32 bits = __float_as_uint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16>(0x7fff)};
  return {static_cast<uint16>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
#endif
}

/// A float as an element of type T.
template <typename T>
__device__ __forceinline__ T from_float(float x) {
  return static_cast<T>(x);
}
template <>
__device__ __forceinline__ f16 from_float<f16>(float x) {
  return to_f16(x);
}
template <>
__device__ __forceinline__ bf16 from_float<bf16>(float x) {
  return to_bf16(x);
}
