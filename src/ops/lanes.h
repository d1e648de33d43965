#pragma once

/// Vectors of f32 as wide as the instruction set that a _simd.cpp file is compiled for. Plain
/// operators (+, *, comparisons, ?:) work lane by lane.

#include <cstdint>
#if DAIS_ISA_LEVEL >= 1
#include <immintrin.h>
#endif

namespace dais::DAIS_ISA {

#if DAIS_ISA_LEVEL >= 2
inline constexpr int64_t kLanes = 16;
#elif DAIS_ISA_LEVEL == 1
inline constexpr int64_t kLanes = 8;
#else
inline constexpr int64_t kLanes = 4;
#endif

using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));
using LooseLanes = float __attribute__((vector_size(kLanes * sizeof(float)), aligned(4)));
using IntLanes = int32_t __attribute__((vector_size(kLanes * sizeof(float))));

inline Lanes load(const float* from) { return *reinterpret_cast<const LooseLanes*>(from); }
inline void store(float* to, Lanes value) { *reinterpret_cast<LooseLanes*>(to) = value; }
inline Lanes splat(float value) { return value - Lanes{}; }

/// The first `count` lanes; the others are 0, or are left as they are in memory.
inline Lanes load_part(const float* from, int64_t count) {
#if DAIS_ISA_LEVEL >= 2
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << count) - 1), from);
#else
  Lanes out{};
  for (int64_t i = 0; i < count; ++i) out[i] = from[i];
  return out;
#endif
}
inline void store_part(float* to, Lanes value, int64_t count) {
#if DAIS_ISA_LEVEL >= 2
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1U << count) - 1), value);
#else
  for (int64_t i = 0; i < count; ++i) to[i] = value[i];
#endif
}

/// a * b + c, rounded once where the instruction set has it.
inline Lanes multiply_add(Lanes a, Lanes b, Lanes c) {
#if DAIS_ISA_LEVEL >= 2
  return _mm512_fmadd_ps(a, b, c);
#elif DAIS_ISA_LEVEL == 1
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

/// The larger and the smaller; where `a` is NaN, `b`.
inline Lanes larger(Lanes a, Lanes b) {
#if DAIS_ISA_LEVEL >= 2
  return _mm512_max_ps(a, b);
#elif DAIS_ISA_LEVEL == 1
  return _mm256_max_ps(a, b);
#else
  return a > b ? a : b;
#endif
}
inline Lanes smaller(Lanes a, Lanes b) {
#if DAIS_ISA_LEVEL >= 2
  return _mm512_min_ps(a, b);
#elif DAIS_ISA_LEVEL == 1
  return _mm256_min_ps(a, b);
#else
  return a < b ? a : b;
#endif
}

/// The larger; NaN where either is NaN.
inline Lanes larger_or_nan(Lanes a, Lanes b) { return a != a ? a : larger(a, b); }

}  // namespace dais::DAIS_ISA
