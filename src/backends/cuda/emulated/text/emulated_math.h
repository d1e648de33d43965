#pragma once

// Mathematical functions, reinterpretation and integer intrinsics.

#include "emulated_language.h"

#define DAIS_MATH(name)                                            \
  inline float name##f(float x) { return __builtin_##name##f(x); } \
  inline double name(double x) { return __builtin_##name(x); }     \
  inline float name(float x) { return __builtin_##name##f(x); }
DAIS_MATH(acos)
DAIS_MATH(acosh)
DAIS_MATH(asin)
DAIS_MATH(asinh)
DAIS_MATH(atan)
DAIS_MATH(atanh)
DAIS_MATH(cbrt)
DAIS_MATH(ceil)
DAIS_MATH(cos)
DAIS_MATH(cosh)
DAIS_MATH(erf)
DAIS_MATH(erfc)
DAIS_MATH(exp)
DAIS_MATH(exp2)
DAIS_MATH(expm1)
DAIS_MATH(fabs)
DAIS_MATH(floor)
DAIS_MATH(log)
DAIS_MATH(log10)
DAIS_MATH(log1p)
DAIS_MATH(log2)
DAIS_MATH(nearbyint)
DAIS_MATH(rint)
DAIS_MATH(round)
DAIS_MATH(sin)
DAIS_MATH(sinh)
DAIS_MATH(sqrt)
DAIS_MATH(tan)
DAIS_MATH(tanh)
DAIS_MATH(tgamma)
DAIS_MATH(lgamma)
DAIS_MATH(trunc)
#undef DAIS_MATH
#define DAIS_MATH(name)                                                        \
  inline float name##f(float x, float y) { return __builtin_##name##f(x, y); } \
  inline double name(double x, double y) { return __builtin_##name(x, y); }    \
  inline float name(float x, float y) { return __builtin_##name##f(x, y); }
DAIS_MATH(atan2)
DAIS_MATH(copysign)
DAIS_MATH(fdim)
DAIS_MATH(fmax)
DAIS_MATH(fmin)
DAIS_MATH(fmod)
DAIS_MATH(hypot)
DAIS_MATH(pow)
DAIS_MATH(remainder)
#undef DAIS_MATH

inline float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
inline float ldexpf(float x, int e) { return __builtin_ldexpf(x, e); }
inline float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
inline float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
inline float __expf(float x) { return __builtin_expf(x); }
inline float __logf(float x) { return __builtin_logf(x); }
inline float __log2f(float x) { return __builtin_log2f(x); }
inline float __powf(float x, float y) { return __builtin_powf(x, y); }
inline float __sinf(float x) { return __builtin_sinf(x); }
inline float __cosf(float x) { return __builtin_cosf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline void sincosf(float x, float* s, float* c) {
  *s = __builtin_sinf(x);
  *c = __builtin_cosf(x);
}
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }

inline bool isnan(float x) { return __builtin_isnan(x); }
inline bool isnan(double x) { return __builtin_isnan(x); }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isinf(double x) { return __builtin_isinf(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline bool isfinite(double x) { return __builtin_isfinite(x); }
inline bool signbit(float x) { return __builtin_signbit(x); }
inline bool signbit(double x) { return __builtin_signbit(x); }

#define DAIS_ORDER(T)                              \
  inline T min(T a, T b) { return b < a ? b : a; } \
  inline T max(T a, T b) { return a < b ? b : a; }
DAIS_ORDER(int)
DAIS_ORDER(unsigned)
DAIS_ORDER(long)
DAIS_ORDER(unsigned long)
DAIS_ORDER(long long)
DAIS_ORDER(unsigned long long)
#undef DAIS_ORDER
inline unsigned min(int a, unsigned b) { return min(static_cast<unsigned>(a), b); }
inline unsigned min(unsigned a, int b) { return min(a, static_cast<unsigned>(b)); }
inline unsigned max(int a, unsigned b) { return max(static_cast<unsigned>(a), b); }
inline unsigned max(unsigned a, int b) { return max(a, static_cast<unsigned>(b)); }
inline float min(float a, float b) { return __builtin_fminf(a, b); }
inline float max(float a, float b) { return __builtin_fmaxf(a, b); }
inline double min(double a, double b) { return __builtin_fmin(a, b); }
inline double max(double a, double b) { return __builtin_fmax(a, b); }
inline int abs(int x) { return __builtin_abs(x); }
inline long abs(long x) { return __builtin_labs(x); }
inline long long abs(long long x) { return __builtin_llabs(x); }
inline float abs(float x) { return __builtin_fabsf(x); }
inline double abs(double x) { return __builtin_fabs(x); }

inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }

namespace dais_emulation {
/// A float as an integer of type T as the device converts: NaN is 0, what is outside T its edge.
template <typename T>
inline T to_integer(double x, T least, T most) {
  if (x != x) return 0;
  if (x <= static_cast<double>(least)) return least;
  return x >= static_cast<double>(most) ? most : static_cast<T>(x);
}
}  // namespace dais_emulation
inline int __float2int_rn(float x) {
  return dais_emulation::to_integer(__builtin_rintf(x), -0x7fffffff - 1, 0x7fffffff);
}
inline int __float2int_rz(float x) {
  return dais_emulation::to_integer(x, -0x7fffffff - 1, 0x7fffffff);
}
inline int __float2int_rd(float x) {
  return dais_emulation::to_integer(__builtin_floorf(x), -0x7fffffff - 1, 0x7fffffff);
}
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __clzll(long long x) {
  return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64;
}
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32);
}
inline int __mulhi(int a, int b) { return static_cast<int>((static_cast<long long>(a) * b) >> 32); }
inline unsigned __brev(unsigned x) {
  unsigned y = 0;
  for (int i = 0; i < 32; ++i) y |= (x >> i & 1u) << (31 - i);
  return y;
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const unsigned long long both = static_cast<unsigned long long>(b) << 32 | a;
  unsigned out = 0;
  for (int i = 0; i < 4; ++i)
    out |= static_cast<unsigned>(both >> (8 * (selector >> (4 * i) & 7)) & 0xff) << (8 * i);
  return out;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  by &= 31;
  return by ? high << by | low >> (32 - by) : high;
}
inline int __dp4a(int a, int b, int sum) {
  for (int i = 0; i < 4; ++i)
    sum += static_cast<signed char>(a >> (8 * i)) * static_cast<signed char>(b >> (8 * i));
  return sum;
}

template <typename T>
__forceinline__ T __ldg(const T* address) {
  return *address;
}
template <typename T>
__forceinline__ T __ldcs(const T* address) {
  return *address;
}
template <typename T>
__forceinline__ void __stcs(T* address, T value) {
  *address = value;
}
