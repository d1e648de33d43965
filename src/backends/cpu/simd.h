#pragma once

#include <cstdint>
#if DAIS_ISA_LEVEL >= 1
#include <immintrin.h>
#else
#include <emmintrin.h>
#endif

/// Vectors of f32 at the level that a _simd.cpp file is compiled for, and functions of them. Only
/// for those files. `Vf` holds kLanes floats; lanes beyond a count are masked by load_first() and
/// store_first(). Functions are accurate to about 2e-7 relative unless they say otherwise.
namespace dais::DAIS_ISA {

#if DAIS_ISA_LEVEL >= 2

constexpr int kLanes = 16;
using Vf = __m512;
inline Vf load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, Vf v) { _mm512_storeu_ps(p, v); }
inline __mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>((1u << (count < kLanes ? count : kLanes)) - 1);
}
inline Vf load_first(const float* p, int64_t count) {
  return _mm512_maskz_loadu_ps(first_lanes(count), p);
}
inline void store_first(float* p, Vf v, int64_t count) {
  _mm512_mask_storeu_ps(p, first_lanes(count), v);
}
inline Vf all(float x) { return _mm512_set1_ps(x); }
inline Vf add(Vf a, Vf b) { return _mm512_add_ps(a, b); }
inline Vf sub(Vf a, Vf b) { return _mm512_sub_ps(a, b); }
inline Vf mul(Vf a, Vf b) { return _mm512_mul_ps(a, b); }
inline Vf div(Vf a, Vf b) { return _mm512_div_ps(a, b); }
inline Vf fma(Vf a, Vf b, Vf c) { return _mm512_fmadd_ps(a, b, c); }
/// The second operand where the first is NaN.
inline Vf max(Vf a, Vf b) { return _mm512_max_ps(a, b); }
inline Vf min(Vf a, Vf b) { return _mm512_min_ps(a, b); }
inline Vf sqrt(Vf a) { return _mm512_sqrt_ps(a); }
inline Vf abs(Vf a) { return _mm512_abs_ps(a); }
/// yes where a < b, else no.
inline Vf select_less(Vf a, Vf b, Vf yes, Vf no) {
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}
inline float sum(Vf a) { return _mm512_reduce_add_ps(a); }
inline float largest(Vf a) { return _mm512_reduce_max_ps(a); }
/// x * 2^n for whole n in [-126, 128].
inline Vf scale_by_power(Vf x, Vf n) { return _mm512_scalef_ps(x, n); }
inline Vf round_even(Vf x) { return _mm512_roundscale_ps(x, 8); }
/// a with the sign of b.
inline Vf with_sign(Vf a, Vf b) {
  const __m512i sign = _mm512_set1_epi32(INT32_MIN);
  return _mm512_castsi512_ps(
      _mm512_ternarylogic_epi32(sign, _mm512_castps_si512(b), _mm512_castps_si512(a), 0xCA));
}

#elif DAIS_ISA_LEVEL == 1

constexpr int kLanes = 8;
using Vf = __m256;
inline __m256i first_lanes(int64_t count) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count < 8 ? count : 8)), lanes);
}
inline Vf load(const float* p) { return _mm256_loadu_ps(p); }
inline void store(float* p, Vf v) { _mm256_storeu_ps(p, v); }
inline Vf load_first(const float* p, int64_t count) {
  return _mm256_maskload_ps(p, first_lanes(count));
}
inline void store_first(float* p, Vf v, int64_t count) {
  _mm256_maskstore_ps(p, first_lanes(count), v);
}
inline Vf all(float x) { return _mm256_set1_ps(x); }
inline Vf add(Vf a, Vf b) { return _mm256_add_ps(a, b); }
inline Vf sub(Vf a, Vf b) { return _mm256_sub_ps(a, b); }
inline Vf mul(Vf a, Vf b) { return _mm256_mul_ps(a, b); }
inline Vf div(Vf a, Vf b) { return _mm256_div_ps(a, b); }
inline Vf fma(Vf a, Vf b, Vf c) { return _mm256_fmadd_ps(a, b, c); }
inline Vf max(Vf a, Vf b) { return _mm256_max_ps(a, b); }
inline Vf min(Vf a, Vf b) { return _mm256_min_ps(a, b); }
inline Vf sqrt(Vf a) { return _mm256_sqrt_ps(a); }
inline Vf abs(Vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
inline Vf select_less(Vf a, Vf b, Vf yes, Vf no) {
  return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}
inline float sum(Vf a) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}
inline float largest(Vf a) {
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_shuffle_ps(s, s, 1)));
}
inline Vf round_even(Vf x) { return _mm256_round_ps(x, 8); }
inline Vf scale_by_power(Vf x, Vf n) {
  // In two steps, as 2^128 is no float.
  const __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
  const __m256i bias = _mm256_set1_epi32(127);
  const auto power = [&](__m256i k) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(k, bias), 23));
  };
  return _mm256_mul_ps(_mm256_mul_ps(x, power(half)), power(_mm256_sub_epi32(whole, half)));
}
inline Vf with_sign(Vf a, Vf b) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return _mm256_or_ps(_mm256_andnot_ps(sign, a), _mm256_and_ps(sign, b));
}

#else

constexpr int kLanes = 4;
using Vf = __m128;
inline Vf load(const float* p) { return _mm_loadu_ps(p); }
inline void store(float* p, Vf v) { _mm_storeu_ps(p, v); }
inline Vf load_first(const float* p, int64_t count) {
  alignas(16) float held[4] = {};
  for (int64_t i = 0; i < count && i < 4; ++i) held[i] = p[i];
  return _mm_load_ps(held);
}
inline void store_first(float* p, Vf v, int64_t count) {
  alignas(16) float held[4];
  _mm_store_ps(held, v);
  for (int64_t i = 0; i < count && i < 4; ++i) p[i] = held[i];
}
inline Vf all(float x) { return _mm_set1_ps(x); }
inline Vf add(Vf a, Vf b) { return _mm_add_ps(a, b); }
inline Vf sub(Vf a, Vf b) { return _mm_sub_ps(a, b); }
inline Vf mul(Vf a, Vf b) { return _mm_mul_ps(a, b); }
inline Vf div(Vf a, Vf b) { return _mm_div_ps(a, b); }
inline Vf fma(Vf a, Vf b, Vf c) { return _mm_add_ps(_mm_mul_ps(a, b), c); }
inline Vf max(Vf a, Vf b) { return _mm_max_ps(a, b); }
inline Vf min(Vf a, Vf b) { return _mm_min_ps(a, b); }
inline Vf sqrt(Vf a) { return _mm_sqrt_ps(a); }
inline Vf abs(Vf a) { return _mm_andnot_ps(_mm_set1_ps(-0.0f), a); }
inline Vf select_less(Vf a, Vf b, Vf yes, Vf no) {
  const __m128 mask = _mm_cmplt_ps(a, b);
  return _mm_or_ps(_mm_and_ps(mask, yes), _mm_andnot_ps(mask, no));
}
inline float sum(Vf a) {
  const __m128 s = _mm_add_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}
inline float largest(Vf a) {
  const __m128 s = _mm_max_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_shuffle_ps(s, s, 1)));
}
/// For |x| < 2^31.
inline Vf round_even(Vf x) { return _mm_cvtepi32_ps(_mm_cvtps_epi32(x)); }
inline Vf scale_by_power(Vf x, Vf n) {
  const __m128i whole = _mm_cvtps_epi32(n), half = _mm_srai_epi32(whole, 1);
  const auto power = [&](__m128i k) {
    return _mm_castsi128_ps(_mm_slli_epi32(_mm_add_epi32(k, _mm_set1_epi32(127)), 23));
  };
  return _mm_mul_ps(_mm_mul_ps(x, power(half)), power(_mm_sub_epi32(whole, half)));
}
inline Vf with_sign(Vf a, Vf b) {
  const __m128 sign = _mm_set1_ps(-0.0f);
  return _mm_or_ps(_mm_andnot_ps(sign, a), _mm_and_ps(sign, b));
}

#endif

/// c0 + x * (c1 + x * (c2 + ...)).
template <int count>
inline Vf polynomial(Vf x, const float (&c)[count]) {
  Vf y = all(c[count - 1]);
  for (int i = count - 2; i >= 0; --i) y = fma(y, x, all(c[i]));
  return y;
}

/// e^x; zero below -87.3 (where the result is no normal number), infinity above 88.8.
inline Vf exp(Vf x) {
  const Vf low = all(-87.33f);
  const Vf held = max(low, min(all(89.0f), x));  // in this order NaN goes through
  const Vf n = round_even(mul(held, all(1.44269504f)));
  // ln 2 in two parts, the first short enough that n times it is exact.
  const Vf r = fma(n, all(-1.42860682e-6f), fma(n, all(-0.693145752f), held));
  constexpr float c[] = {0.4999999942f, 0.1666657745f, 0.04166694269f, 0.008363125765f,
                         0.001389383153f};
  const Vf y = fma(mul(r, r), polynomial(r, c), add(r, all(1)));
  return select_less(x, low, all(0), scale_by_power(y, n));
}

/// 1 / (1 + e^-x).
inline Vf sigmoid(Vf x) { return div(all(1), add(all(1), exp(sub(all(0), x)))); }

inline Vf tanh(Vf x) {
  const Vf size = abs(x), square = mul(x, x);
  constexpr float c[] = {0.9999999667f, -0.3333278534f, 0.1331871879f, -0.05258102516f,
                         0.01630181377f};
  const Vf near = mul(size, polynomial(square, c));
  const Vf far = sub(all(1), div(all(2), add(exp(add(size, size)), all(1))));
  return with_sign(select_less(size, all(0.55f), near, far), x);
}

/// The normal distribution's lower tail, P(X < x); its relative error is small for negative x too.
inline Vf normal_cdf(Vf x) {
  const Vf z = mul(abs(x), all(0.707106781f));
  const Vf t = div(all(1), fma(z, all(0.5f), all(1)));
  // erfc(z) * e^(z z) / t as a polynomial of t, fitted for 0 <= z <= 10.
  constexpr float c[] = {0.2820823575f,  0.2824538421f,   0.2424793787f,
                         0.205360429f,   -0.03339901992f, 0.2885151458f,
                         -0.4968295764f, 0.2894461006f,   -0.06010870773f};
  const Vf tail = mul(mul(mul(t, all(0.5f)), polynomial(t, c)), exp(mul(mul(x, x), all(-0.5f))));
  return select_less(x, all(0), tail, sub(all(1), tail));
}

/// x * normal_cdf(x).
inline Vf gelu(Vf x) { return mul(x, normal_cdf(x)); }

/// The approximation of gelu by tanh: x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))).
inline Vf gelu_tanh(Vf x) {
  const Vf inner = mul(mul(x, fma(mul(x, x), all(0.044715f), all(1))), all(2 * 0.7978845608f));
  return mul(x, sigmoid(inner));
}

}  // namespace dais::DAIS_ISA
