#pragma once

#include "float8.cuh"
#include "number.cuh"

// What products of bytes have in common: the four-byte dot product, and what becomes of the sums.
// Compiled with A_TYPE, B_TYPE, Y_TYPE and STORE, which says what is kept: 0 the sums (int32), 1
// codes (round(sum * scales) + zero, saturated), 2 floats (sum * scales + added); and with FLOATS
// where A's and B's bytes are floats of 8 bits, whose sums are floats and which have no zero points.

/// What the sums become. Steps are 0 or 1: one value for all, or one for each row of A and column
/// of B. Zero points, the bias and what is added to floats may be null.
struct Finish {
  const A_TYPE* a_zero;
  const B_TYPE* b_zero;
  const float* a_scale;
  const float* b_scale;
  const float* y_scale;
  const Y_TYPE* y_zero;
  const int32* bias;
  const float* added;  // one for each column
  int32 a_zero_step, b_zero_step, a_scale_step, b_scale_step, bias_row_step, bias_column_step;
  float alpha;
  int32 least, most;  // of the codes
};

/// What a sum of products is kept in.
#ifdef FLOATS
using Sum = float;

__device__ __forceinline__ float centered(int32, const Finish&, float sum, int32, int32, int32,
                                          int32) {
  return sum;
}
#else
using Sum = int32;

/// The sum with its zero points: row and column count within the whole result. The sums were taken
/// of elements that were less than A's and B's by `a_less` and `b_less`.
__device__ __forceinline__ int32 centered(int32 depth, const Finish& f, int32 sum, int32 of_a,
                                          int32 of_b, int32 row, int32 column, int32 a_less = 0,
                                          int32 b_less = 0) {
  const int32 a0 = (f.a_zero ? f.a_zero[row * f.a_zero_step] : 0) - a_less;
  const int32 b0 = (f.b_zero ? f.b_zero[column * f.b_zero_step] : 0) - b_less;
  return sum - b0 * of_a - a0 * of_b + depth * a0 * b0;
}
#endif

__device__ __forceinline__ Y_TYPE finished(const Finish& f, Sum sum, int32 row, int32 column) {
#if STORE == 0
  return sum;
#else
  if (f.bias) sum += f.bias[row * f.bias_row_step + column * f.bias_column_step];
  const float scale = f.a_scale[row * f.a_scale_step] * f.b_scale[column * f.b_scale_step] * f.alpha;
#if STORE == 2
  return static_cast<float>(sum) * scale + (f.added ? f.added[column] : 0.0f);
#else
  const float value = rintf(static_cast<float>(sum) * (scale / *f.y_scale));
  const float code = value + static_cast<float>(f.y_zero ? *f.y_zero : 0);
  return static_cast<Y_TYPE>(fminf(fmaxf(code, static_cast<float>(f.least)),
                                   static_cast<float>(f.most)));
#endif
#endif
}

/// total + the product of four bytes each.
template <typename A, typename B>
__device__ __forceinline__ int32 dot(uint32 a, uint32 b, int32 total) {
#if !defined(DAIS_EMULATED) && __CUDA_ARCH__ >= 610
  constexpr bool left = A(-1) < A(0), right = B(-1) < B(0);  // whether they have signs
  if (left && right)
    asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(total) : "r"(a), "r"(b));
  else if (left)
    asm("dp4a.s32.u32 %0, %1, %2, %0;" : "+r"(total) : "r"(a), "r"(b));
  else if (right)
    asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(total) : "r"(a), "r"(b));
  else
    asm("dp4a.u32.u32 %0, %1, %2, %0;" : "+r"(total) : "r"(a), "r"(b));
#else
#pragma unroll
  for (int i = 0; i < 4; ++i)
    total += int32(static_cast<A>(a >> (8 * i))) * int32(static_cast<B>(b >> (8 * i)));
#endif
  return total;
}

constexpr uint32 kOnes = 0x01010101u;

/// A byte's bits, whatever it stands for.
template <typename T>
__device__ __forceinline__ uint8 bits_of(T byte) {
  return static_cast<uint8>(byte);
}
__device__ __forceinline__ uint8 bits_of(f8e4m3 byte) { return byte.bits; }
__device__ __forceinline__ uint8 bits_of(f8e5m2 byte) { return byte.bits; }

// Four bytes as the dot product takes them: as they are, or, of floats, widened once for all products
// that a thread makes of them.
#ifdef FLOATS
struct Four {
  float at[4];
};
template <typename T>
__device__ __forceinline__ Four four_of(uint32 word) {
  Four out;
#pragma unroll
  for (int i = 0; i < 4; ++i) out.at[i] = to_float(T{static_cast<uint8>(word >> (8 * i))});
  return out;
}
template <typename A, typename B>
__device__ __forceinline__ float dot(const Four& a, const Four& b, float total) {
#pragma unroll
  for (int i = 0; i < 4; ++i) total += a.at[i] * b.at[i];
  return total;
}
#else
using Four = uint32;
template <typename T>
__device__ __forceinline__ uint32 four_of(uint32 word) {
  return word;
}
#endif
