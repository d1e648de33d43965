// Casts of types that take a byte in memory and are no bytes: floats of 8 and 4 bits, integers of 4
// and 2. Floats are rounded to nearest and lose their fraction where they become integers; what lies
// outside gives the nearest limit, but integers of 4 and 2 bits wrap. Bound by memory.
//
// Compiled with: -DFROM=float -DTO=f8e4m3
// Compiled with: -DFROM=f8e5m2 -DTO=bf16
// Compiled with: -DFROM=f16 -DTO=f8e5m2fnuz
// Compiled with: -DFROM=f8e4m3fnuz -DTO=int32
// Compiled with: -DFROM=bf16 -DTO=f8e8m0
// Compiled with: -DFROM=float -DTO=i4
// Compiled with: -DFROM=u2 -DTO=f16
// Compiled with: -DFROM=int8 -DTO=f4e2m1
#include "small_types.cuh"

template <typename T>
constexpr bool is_whole = false;
template <>
constexpr bool is_whole<int8> = true;
template <>
constexpr bool is_whole<uint8> = true;
template <>
constexpr bool is_whole<int16> = true;
template <>
constexpr bool is_whole<uint16> = true;
template <>
constexpr bool is_whole<int32> = true;
template <>
constexpr bool is_whole<int64> = true;
template <typename T>
constexpr bool is_small = false;
template <int width, bool has_sign>
constexpr bool is_small<SmallWhole<width, has_sign>> = true;

/// A float or an int64.
template <typename T>
__device__ __forceinline__ auto widened(T x) {
  if constexpr (is_small<T>)
    return x.number();
  else if constexpr (is_whole<T>)
    return static_cast<int64>(x);
  else
    return to_float(x);
}

/// A float or an int64 as one of these integers.
template <typename T, typename C>
__device__ __forceinline__ T whole_of(C value) {
  constexpr bool kSigned = T(-1) < T(0);
  constexpr int64 kMost = static_cast<int64>(~uint64(0) >> (64 - 8 * sizeof(T) + kSigned));
  if constexpr (is_whole<C>)
    return static_cast<T>(value);
  else
    return static_cast<T>(real_to_range(value, kSigned ? -kMost - 1 : 0, kMost));
}

/// The code of a float in a format of 8 or 4 bits.
template <typename T>
__device__ __forceinline__ T coded(float x, int saturate, ScaleRounding) {
  return code_of<T>(x, saturate);
}
template <>
__device__ __forceinline__ f8e8m0 coded<f8e8m0>(float x, int saturate, ScaleRounding rounding) {
  return scale_of(x, saturate, rounding);
}

template <typename T, typename C>
__device__ __forceinline__ T narrowed(C value, int saturate, ScaleRounding rounding) {
  if constexpr (is_small<T>)
    return T::of(whole_of<int32>(value));
  else if constexpr (is_whole<T>)
    return whole_of<T>(value);
  else if constexpr (sizeof(T) > 1)
    return from_float<T>(static_cast<float>(value));
  else
    return coded<T>(static_cast<float>(value), saturate, rounding);
}

extern "C" __global__ void __launch_bounds__(256)
    cast(const FROM* __restrict__ x, TO* __restrict__ y, Size count, int saturate, int rounding) {
  each_element(count, [&](Size i) {
    y[i] = narrowed<TO>(widened(x[i]), saturate, static_cast<ScaleRounding>(rounding));
  });
}
