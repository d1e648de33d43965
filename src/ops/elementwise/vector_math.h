#pragma once

// f32 functions for loops that the compiler turns into vector code: no branches, no calls, every
// path computed. Polynomials are interpolations at Chebyshev nodes of the interval given beside
// them. Errors stay within 2 units in the last place unless stated. For *_simd.cpp only.

#include <cstdint>

namespace dais::DAIS_ISA {
namespace {

inline float fused(float a, float b, float c) {
#if DAIS_ISA_LEVEL >= 1
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

inline int32_t bits_of(float x) { return __builtin_bit_cast(int32_t, x); }
inline float float_of(int32_t bits) { return __builtin_bit_cast(float, bits); }
inline float power_of_two(int32_t n) { return float_of((n + 127) << 23); }

inline constexpr float kInfinity = __builtin_inff();
inline constexpr float kLog2E = 1.44269504F;
inline constexpr float kLn2High =
    0x1.62e4p-1F;  ///< so short that products with small integers are exact
inline constexpr float kLn2Low = 1.42860682e-6F;
/// Adding it rounds to an integer, which then stands in the low bits.
inline constexpr float kRounder = 12582912.0F;

/// x = n ln2 + r; |r| <= ln2 / 2 for |x| < 2^21.
struct Reduced {
  float r;
  int32_t n;
};
inline Reduced reduce_ln2(float x) {
  const float shifted = fused(x, kLog2E, kRounder);
  const float n = shifted - kRounder;
  const float r = fused(n, -kLn2Low, fused(n, -kLn2High, x));
  return {r, bits_of(shifted) - bits_of(kRounder)};
}

/// exp(r) - 1 for |r| <= ln2 / 2.
inline float small_expm1(float r) {
  float p = 0.00139261775F;
  p = fused(p, r, 0.00836317418F);
  p = fused(p, r, 0.0416665547F);
  p = fused(p, r, 0.16666577F);
  p = fused(p, r, 0.5F);
  return fused(p * r, r, r);
}

inline float exp_of(float x) {
  float c = x < -104.0F ? -104.0F : x;
  c = c > 89.0F ? 89.0F : c;
  const Reduced part = reduce_ln2(c);
  const int32_t half = part.n >> 1;
  return (small_expm1(part.r) + 1.0F) * power_of_two(half) * power_of_two(part.n - half);
}

/// exp(x) - 1, relative error small everywhere; x is cut at 80.
inline float expm1_of(float x) {
  float c = x < -30.0F ? -30.0F : x;
  c = c > 80.0F ? 80.0F : c;
  const Reduced part = reduce_ln2(c);
  const float scale = power_of_two(part.n);
  return fused(scale, small_expm1(part.r), scale - 1.0F);
}

/// log(1 + f) - e ln2, for 1 + f in [1 / sqrt(2), sqrt(2)].
inline float log_of_parts(float f, float e) {
  float p = 0.0697168125F;
  p = fused(p, f, -0.114798369F);
  p = fused(p, f, 0.116854431F);
  p = fused(p, f, -0.124256758F);
  p = fused(p, f, 0.142490543F);
  p = fused(p, f, -0.166678027F);
  p = fused(p, f, 0.200007158F);
  p = fused(p, f, -0.24999997F);
  p = fused(p, f, 0.333333312F);
  const float square = f * f;
  const float low = fused(e, kLn2Low, fused(square * f, p, -0.5F * square));
  return fused(e, kLn2High, f + low);
}

inline float log_of(float x) {
  const bool tiny = x < 1.17549435e-38F;
  const float scaled = tiny ? x * 8388608.0F : x;
  // Unsigned, as negative numbers wrap here; their result is replaced below.
  const auto bits = static_cast<uint32_t>(bits_of(scaled));
  const int32_t e = static_cast<int32_t>(bits - 0x3f3504f3U) >> 23;
  const float f = float_of(static_cast<int32_t>(bits - (static_cast<uint32_t>(e) << 23))) - 1.0F;
  float y = log_of_parts(f, static_cast<float>(e) - (tiny ? 23.0F : 0.0F));
  y = x == kInfinity ? x : y;
  y = x == 0.0F ? -kInfinity : y;
  y = x < 0.0F ? __builtin_nanf("") : y;
  return x != x ? x : y;
}

/// log(1 + t) for t in [0, 1].
inline float log1p_unit(float t) {
  const bool high = t > 0.414F;
  return log_of_parts(high ? fused(t, 0.5F, -0.5F) : t, high ? 1.0F : 0.0F);
}

inline float sigmoid_of(float x) { return 1.0F / (1.0F + exp_of(-x)); }

inline float tanh_of(float x) {
  float a = __builtin_fabsf(x);
  a = a > 10.0F ? 10.0F : a;
  const float e = expm1_of(2.0F * a);
  return __builtin_copysignf(e / (e + 2.0F), x);
}

inline float softplus_of(float x) {
  return (x > 0.0F ? x : 0.0F) + log1p_unit(exp_of(-__builtin_fabsf(x)));
}

/// erf(u) for |u| <= 0.9.
inline float small_erf(float u) {
  const float t = u * u;
  float p = -0.000610268704F;
  p = fused(p, t, 0.00501448415F);
  p = fused(p, t, -0.0267807191F);
  p = fused(p, t, 0.112821941F);
  p = fused(p, t, -0.376125288F);
  p = fused(p, t, 1.12837915F);
  return p * u;
}

/// 1 - erf(a) for a in [0.9, 5.1] (cut there), by a polynomial of its logarithm. Absolute error
/// below 4e-8, relative error below 4e-6.
inline float large_erfc(float a) {
  const float v = (a > 5.1F ? 5.1F : a) - 3.0F;
  float p = 1.09915406e-07F;
  p = fused(p, v, -1.12345986e-06F);
  p = fused(p, v, 7.24311325e-06F);
  p = fused(p, v, -4.29770992e-05F);
  p = fused(p, v, 0.000245471524F);
  p = fused(p, v, -0.00135339609F);
  p = fused(p, v, 0.0074120184F);
  p = fused(p, v, 0.957394246F);
  p = fused(p, v, 6.30375368F);
  p = fused(p, v, 10.720363F);
  return exp_of(-p);
}

inline float erf_of(float x) {
  const float a = __builtin_fabsf(x);
  const float large = __builtin_copysignf(1.0F - large_erfc(a), x);
  return a > 0.9F ? large : small_erf(x);
}

/// x times the normal distribution function; its tail keeps its own digits instead of what is left
/// of 1 - 1.
inline float gelu_of(float x) {
  const float u = x * 0.707106781F;
  const float a = __builtin_fabsf(u);
  const float tail = 0.5F * large_erfc(a);
  const float large = u < 0.0F ? (a > 5.1F ? 0.0F : tail) : 1.0F - tail;
  const float share = a > 0.9F ? large : fused(0.5F, small_erf(u), 0.5F);
  return x == -kInfinity ? 0.0F * share : x * share;
}

inline float gelu_tanh_of(float x) {
  // 0.5 (1 + tanh(z)) is sigmoid(2 z).
  const float z = 1.59576912F * fused(0.044715F * x * x, x, x);
  return x / (1.0F + exp_of(-z));
}

inline float mish_of(float x) {
  const float w = exp_of(x > 20.0F ? 20.0F : x);
  const float n = w * (w + 2.0F);
  return x * (n / (n + 2.0F));
}

/// sin(x + quarter * pi / 2) by reduction in double, for |x| below 2^24 or so.
inline float sine_of(float x, int32_t quarter) {
  constexpr double rounder = 6755399441055744.0;
  const double wide = static_cast<double>(x);
  const double shifted = wide * 0.63661977236758134308 + rounder;
  const double n = shifted - rounder;
  const float r = static_cast<float>((wide - n * 1.5707963267341256) - n * 6.0771005065061925e-11);
  const auto turn = static_cast<int32_t>(n) + quarter;
  const float t = r * r;
  float s = fused(2.72496201e-06F, t, -0.000198400844F);
  s = fused(s, t, 0.00833333187F);
  s = fused(s, t, -0.166666667F);
  s = fused(s * t, r, r);
  float c = fused(2.44634527e-05F, t, -0.00138875866F);
  c = fused(c, t, 0.0416666506F);
  c = fused(c, t, -0.5F);
  c = fused(c, t, 1.0F);
  const float y = (turn & 1) != 0 ? c : s;
  return (turn & 2) != 0 ? -y : y;
}

}  // namespace
}  // namespace dais::DAIS_ISA
