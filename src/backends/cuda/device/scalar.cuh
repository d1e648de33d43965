#pragma once

#include "number.cuh"

// The scalar functions of elementwise operators, for float, double, int64, uint64 and bool. Element
// types are widened to one of these for computing and narrowed once when stored.

template <typename C, typename T>
__device__ __forceinline__ C widen(T x) {
  return static_cast<C>(x);
}
template <>
__device__ __forceinline__ float widen<float, f16>(f16 x) {
  return to_float(x);
}
template <>
__device__ __forceinline__ float widen<float, bf16>(bf16 x) {
  return to_float(x);
}
template <typename T, typename C>
__device__ __forceinline__ T narrow(C x) {
  return static_cast<T>(x);
}
template <>
__device__ __forceinline__ f16 narrow<f16, float>(float x) {
  return to_f16(x);
}
template <>
__device__ __forceinline__ bf16 narrow<bf16, float>(float x) {
  return to_bf16(x);
}

// Casts of floats to integers: NaN gives 0, what lies outside gives the nearest limit.
template <typename C>
__device__ __forceinline__ int64 real_to_int64(C x) {
  if (x != x) return 0;
  if (x >= static_cast<C>(9223372036854775808.0)) return 0x7fffffffffffffffLL;
  if (x < static_cast<C>(-9223372036854775808.0)) return -0x7fffffffffffffffLL - 1;
  return static_cast<int64>(x);
}
template <typename C>
__device__ __forceinline__ uint64 real_to_uint64(C x) {
  if (!(x > 0)) return 0;
  if (x >= static_cast<C>(18446744073709551616.0)) return ~uint64(0);
  return static_cast<uint64>(x);
}
template <typename C>
__device__ __forceinline__ int64 real_to_range(C x, int64 least, int64 most) {
  const int64 whole = real_to_int64(x);
  return whole < least ? least : whole > most ? most : whole;
}
__device__ __forceinline__ float as_f16(float x) { return to_float(to_f16(x)); }
__device__ __forceinline__ float as_bf16(float x) { return to_float(to_bf16(x)); }

#define REAL_NAMED(name, function)                                            \
  __device__ __forceinline__ float s_##name(float x) { return function##f(x); } \
  __device__ __forceinline__ double s_##name(double x) { return function(x); }
REAL_NAMED(abs, fabs)
REAL_NAMED(acos, acos)
REAL_NAMED(acosh, acosh)
REAL_NAMED(asin, asin)
REAL_NAMED(asinh, asinh)
REAL_NAMED(atan, atan)
REAL_NAMED(atanh, atanh)
REAL_NAMED(ceil, ceil)
REAL_NAMED(cos, cos)
REAL_NAMED(cosh, cosh)
REAL_NAMED(erf, erf)
REAL_NAMED(exp, exp)
REAL_NAMED(expm1, expm1)
REAL_NAMED(floor, floor)
REAL_NAMED(log, log)
REAL_NAMED(log1p, log1p)
REAL_NAMED(round, rint)
REAL_NAMED(sin, sin)
REAL_NAMED(sinh, sinh)
REAL_NAMED(sqrt, sqrt)
REAL_NAMED(tan, tan)
REAL_NAMED(tanh, tanh)
#undef REAL_NAMED

template <typename C>
__device__ __forceinline__ C s_reciprocal(C x) {
  return C(1) / x;
}
template <typename C>
__device__ __forceinline__ C s_sigmoid(C x) {
  return C(1) / (C(1) + s_exp(-x));
}
template <typename C>
__device__ __forceinline__ C s_softplus(C x) {
  return x > 0 ? x + s_log1p(s_exp(-x)) : s_log1p(s_exp(x));
}
template <typename C>
__device__ __forceinline__ C s_softsign(C x) {
  return x / (C(1) + s_abs(x));
}
template <typename C>
__device__ __forceinline__ C s_mish(C x) {
  return x * s_tanh(s_softplus(x));
}
template <typename C>
__device__ __forceinline__ C s_gelu(C x) {
  return C(0.5) * x * (C(1) + s_erf(x * C(0.70710678118654752440)));
}
template <typename C>
__device__ __forceinline__ C s_gelu_tanh(C x) {
  const C inner = C(0.79788456080286535588) * (x + C(0.044715) * x * x * x);
  return C(0.5) * x * (C(1) + s_tanh(inner));
}
template <typename C>
__device__ __forceinline__ C s_clamp(C x, C low, C high) {
  return x < low ? low : x > high ? high : x;
}
template <typename C>
__device__ __forceinline__ C s_hard_swish(C x) {
  return x * s_clamp(x / C(6) + C(0.5), C(0), C(1));
}
template <typename C>
__device__ __forceinline__ bool s_is_nan(C x) {
  return x != x;
}
template <typename C>
__device__ __forceinline__ bool s_is_inf(C x, C negative, C positive) {
  return s_abs(x) == static_cast<C>(__uint_as_float(0x7f800000u)) &&
         (x < 0 ? negative : positive) != 0;
}

__device__ __forceinline__ float s_neg(float x) { return -x; }
__device__ __forceinline__ double s_neg(double x) { return -x; }
__device__ __forceinline__ uint64 s_neg(uint64 x) { return 0 - x; }
__device__ __forceinline__ int64 s_neg(int64 x) {
  return static_cast<int64>(0 - static_cast<uint64>(x));
}
__device__ __forceinline__ int64 s_abs(int64 x) { return x < 0 ? s_neg(x) : x; }
__device__ __forceinline__ uint64 s_abs(uint64 x) { return x; }
template <typename C>
__device__ __forceinline__ C s_sign(C x) {
  if (x != x) return x;
  return static_cast<C>(static_cast<int>(x > C(0)) - static_cast<int>(x < C(0)));
}
__device__ __forceinline__ bool s_logical_not(bool x) { return !x; }
template <typename C>
__device__ __forceinline__ C s_bitwise_not(C x) {
  return ~x;
}

template <typename C>
__device__ __forceinline__ C s_relu(C x) {
  return x < C(0) ? C(0) : x;
}
template <typename C>
__device__ __forceinline__ C s_leaky_relu(C x, C alpha) {
  return x < 0 ? alpha * x : x;
}
template <typename C>
__device__ __forceinline__ C s_elu(C x, C alpha) {
  return x < 0 ? alpha * s_expm1(x) : x;
}
template <typename C>
__device__ __forceinline__ C s_celu(C x, C alpha) {
  return x > 0 ? x : alpha * s_expm1(x / alpha);
}
template <typename C>
__device__ __forceinline__ C s_selu(C x, C alpha, C gamma) {
  return gamma * (x > 0 ? x : alpha * s_expm1(x));
}
template <typename C>
__device__ __forceinline__ C s_hard_sigmoid(C x, C alpha, C beta) {
  return s_clamp(alpha * x + beta, C(0), C(1));
}
template <typename C>
__device__ __forceinline__ C s_thresholded_relu(C x, C alpha) {
  return x <= alpha ? C(0) : x;
}
template <typename C>
__device__ __forceinline__ C s_shrink(C x, C lambd, C bias) {
  return x < -lambd ? x + bias : x > lambd ? x - bias : x != x ? x : C(0);
}
template <typename C>
__device__ __forceinline__ C s_swish(C x, C alpha) {
  return x * s_sigmoid(alpha * x);
}

// Integers wrap: they go through unsigned arithmetic.
#define WRAPPING(name, operation)                                                          \
  __device__ __forceinline__ float s_##name(float a, float b) { return a operation b; }    \
  __device__ __forceinline__ double s_##name(double a, double b) { return a operation b; } \
  __device__ __forceinline__ uint64 s_##name(uint64 a, uint64 b) { return a operation b; } \
  __device__ __forceinline__ int64 s_##name(int64 a, int64 b) {                            \
    return static_cast<int64>(static_cast<uint64>(a) operation static_cast<uint64>(b));    \
  }
WRAPPING(add, +)
WRAPPING(sub, -)
WRAPPING(mul, *)
#undef WRAPPING

__device__ __forceinline__ float s_div(float a, float b) { return a / b; }
__device__ __forceinline__ double s_div(double a, double b) { return a / b; }
__device__ __forceinline__ uint64 s_div(uint64 a, uint64 b) { return b == 0 ? 0 : a / b; }
__device__ __forceinline__ int64 s_div(int64 a, int64 b) {
  return b == 0 ? 0 : b == -1 ? s_neg(a) : a / b;
}
__device__ __forceinline__ float s_mod_trunc(float a, float b) { return fmodf(a, b); }
__device__ __forceinline__ double s_mod_trunc(double a, double b) { return fmod(a, b); }
__device__ __forceinline__ uint64 s_mod_trunc(uint64 a, uint64 b) { return b == 0 ? 0 : a % b; }
__device__ __forceinline__ int64 s_mod_trunc(int64 a, int64 b) {
  return b == 0 || b == -1 ? 0 : a % b;
}
template <typename C>
__device__ __forceinline__ C s_mod_floor(C a, C b) {
  const C rest = s_mod_trunc(a, b);
  if (rest == 0) return b < 0 ? C(-0.0) : C(0);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}
__device__ __forceinline__ float s_pow(float a, float b) { return powf(a, b); }
__device__ __forceinline__ double s_pow(double a, double b) { return pow(a, b); }
__device__ __forceinline__ uint64 s_pow(uint64 base, uint64 exponent) {
  uint64 result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}
__device__ __forceinline__ int64 s_pow(int64 base, int64 exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? base : 1) : 0;
  return static_cast<int64>(s_pow(static_cast<uint64>(base), static_cast<uint64>(exponent)));
}

__device__ __forceinline__ bool s_logical_and(bool a, bool b) { return a && b; }
__device__ __forceinline__ bool s_logical_or(bool a, bool b) { return a || b; }
__device__ __forceinline__ bool s_logical_xor(bool a, bool b) { return a != b; }
#define COMPARING(name, operation)                          \
  template <typename C>                                     \
  __device__ __forceinline__ bool s_##name(C a, C b) {      \
    return a operation b;                                   \
  }
COMPARING(equal, ==)
COMPARING(less, <)
COMPARING(less_or_equal, <=)
COMPARING(greater, >)
COMPARING(greater_or_equal, >=)
#undef COMPARING
#define BITWISE(name, operation)                         \
  template <typename C>                                  \
  __device__ __forceinline__ C s_##name(C a, C b) {      \
    return a operation b;                                \
  }
BITWISE(bitwise_and, &)
BITWISE(bitwise_or, |)
BITWISE(bitwise_xor, ^)
#undef BITWISE
template <typename C>
__device__ __forceinline__ C s_shift_left(C a, C b) {
  const uint64 shift = static_cast<uint64>(b);
  return shift > 63 ? C(0) : static_cast<C>(static_cast<uint64>(a) << shift);
}
template <typename C>
__device__ __forceinline__ C s_shift_right(C a, C b) {
  return static_cast<uint64>(b) > 63 ? C(0) : a >> b;
}
template <typename C>
__device__ __forceinline__ C s_prelu(C x, C slope) {
  return x < C(0) ? s_mul(x, slope) : x;
}

// NaN wins; hence no fmin.
template <typename C>
__device__ __forceinline__ C s_min(C a, C b) {
  return a != a || a < b ? a : b;
}
template <typename C>
__device__ __forceinline__ C s_max(C a, C b) {
  return a != a || a > b ? a : b;
}
/// The upper bound wins when it lies below the lower one.
template <typename C>
__device__ __forceinline__ C s_clip(C x, C low, C high) {
  const C raised = x < low ? low : x;
  return raised > high ? high : raised;
}
template <typename C>
__device__ __forceinline__ C s_where(bool condition, C a, C b) {
  return condition ? a : b;
}
