#pragma once

#include "float8.cuh"
#include "number.cuh"

// The matrix instruction of a warp: D = A * B + D with A 16 by 16, B 16 by 8 (16-bit elements) and D
// 16 by 8 in float. With g = lane / 4 and t = lane % 4, a lane holds, two elements to a register and
// the lower column (of B: row) in the lower half:
//   A: a[0] (g, 2t), a[1] (g + 8, 2t), a[2] (g, 2t + 8), a[3] (g + 8, 2t + 8)
//   B: b[0] (2t, g), b[1] (2t + 8, g)
//   D: d[0] (g, 2t), d[1] (g, 2t + 1), d[2] (g + 8, 2t), d[3] (g + 8, 2t + 1)
// Needs compute capability 8.0; 7.5 has it for f16 in two halves.

#ifdef DAIS_EMULATED
namespace dais_emulation {

struct MmaLane {
  uint32 a[4], b[2];
  float d[4];
};

template <typename T>
__device__ __forceinline__ float mma_half(uint32 pair, int upper) {
  return to_float(T{static_cast<uint16>(pair >> (16 * upper))});
}

template <typename T>
DAIS_UNSEEN void mma(void* const* lanes, unsigned) {
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      auto& owner = *static_cast<MmaLane*>(lanes[row % 8 * 4 + column / 2]);
      float& total = owner.d[row / 8 * 2 + column % 2];
      for (int k = 0; k < 16; ++k) {
        const auto& a = *static_cast<MmaLane*>(lanes[row % 8 * 4 + k % 8 / 2]);
        const auto& b = *static_cast<MmaLane*>(lanes[column * 4 + k % 8 / 2]);
        total += mma_half<T>(a.a[row / 8 + k / 8 * 2], k % 2) * mma_half<T>(b.b[k / 8], k % 2);
      }
    }
}

template <typename Body>
DAIS_UNSEEN void mma_step(float* d, const uint32* a, const uint32* b, Body body) {
  MmaLane mine = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}, {d[0], d[1], d[2], d[3]}};
  hooks->warp(0xffffffffu, &mine, body, false, {__builtin_FILE(), __builtin_LINE()});
  for (int i = 0; i < 4; ++i) d[i] = mine.d[i];
}

}  // namespace dais_emulation
#endif

/// T is f16 or bf16; all lanes take part.
template <typename T>
__device__ __forceinline__ void mma_16x8x16(float (&d)[4], const uint32 (&a)[4],
                                            const uint32 (&b)[2]);

#ifdef DAIS_EMULATED
template <typename T>
__device__ __forceinline__ void mma_16x8x16(float (&d)[4], const uint32 (&a)[4],
                                            const uint32 (&b)[2]) {
  dais_emulation::mma_step(d, a, b, dais_emulation::mma<T>);
}
#else
template <>
__device__ __forceinline__ void mma_16x8x16<f16>(float (&d)[4], const uint32 (&a)[4],
                                                 const uint32 (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#elif __CUDA_ARCH__ >= 750
#pragma unroll
  for (int half = 0; half < 2; ++half)
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
#else
  __trap();
#endif
}

template <>
__device__ __forceinline__ void mma_16x8x16<bf16>(float (&d)[4], const uint32 (&a)[4],
                                                  const uint32 (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  __trap();
#endif
}
#endif

// The same of floats rounded to TF32: A 16 by 8, B 8 by 8, D 16 by 8 in float, one element to a
// register, whose low 13 bits do not count:
//   A: a[0] (g, t), a[1] (g + 8, t), a[2] (g, t + 4), a[3] (g + 8, t + 4)
//   B: b[0] (t, g), b[1] (t + 4, g)
// Needs compute capability 8.0.

/// The nearest number of 10 bits of mantissa, the greater one of two; NaN stays NaN.
__device__ __forceinline__ uint32 to_tf32(float x) {
#if !defined(DAIS_EMULATED) && __CUDA_ARCH__ >= 800
  uint32 bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bits;
#else
  const uint32 bits = __float_as_uint(x);
  if ((bits & 0x7f800000u) == 0x7f800000u)
    return (bits & 0x7fffffu) ? 0x7fffffffu : bits;
  return (bits + 0x1000u) & 0xffffe000u;
#endif
}

#ifdef DAIS_EMULATED
namespace dais_emulation {

DAIS_UNSEEN inline void mma_of_tf32(void* const* lanes, unsigned) {
  const auto number = [](uint32 bits) { return __uint_as_float(bits & 0xffffe000u); };
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      auto& owner = *static_cast<MmaLane*>(lanes[row % 8 * 4 + column / 2]);
      float& total = owner.d[row / 8 * 2 + column % 2];
      for (int k = 0; k < 8; ++k) {
        const auto& a = *static_cast<MmaLane*>(lanes[row % 8 * 4 + k % 4]);
        const auto& b = *static_cast<MmaLane*>(lanes[column * 4 + k % 4]);
        total += number(a.a[row / 8 + k / 4 * 2]) * number(b.b[k / 4]);
      }
    }
}

}  // namespace dais_emulation
#endif

/// All lanes take part.
__device__ __forceinline__ void mma_16x8x8(float (&d)[4], const uint32 (&a)[4],
                                           const uint32 (&b)[2]) {
#ifdef DAIS_EMULATED
  dais_emulation::mma_step(d, a, b, dais_emulation::mma_of_tf32);
#elif __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  __trap();
#endif
}

/// Eight words deep, of elements of type T: f16, bf16, or float, which are TF32.
template <typename T>
__device__ __forceinline__ void mma_words(float (&d)[4], const uint32 (&a)[4],
                                          const uint32 (&b)[2]) {
  mma_16x8x16<T>(d, a, b);
}
template <>
__device__ __forceinline__ void mma_words<float>(float (&d)[4], const uint32 (&a)[4],
                                                 const uint32 (&b)[2]) {
  mma_16x8x8(d, a, b);
}

/// Two elements as the instruction takes them.
template <typename T>
__device__ __forceinline__ uint32 mma_pair(float low, float high) {
  return from_float<T>(low).bits | static_cast<uint32>(from_float<T>(high).bits) << 16;
}

// The same of bytes: A 16 by 32, B 32 by 8, D 16 by 8 in int32. Four elements to a register, the
// lowest column (of B: row) lowest:
//   A: a[0] (g, 4t), a[1] (g + 8, 4t), a[2] (g, 4t + 16), a[3] (g + 8, 4t + 16)
//   B: b[0] (4t, g), b[1] (4t + 16, g)
// Needs compute capability 8.0.

#ifdef DAIS_EMULATED
namespace dais_emulation {

struct ByteMmaLane {
  uint32 a[4], b[2];
  int32 d[4];
};

template <typename T>
__device__ __forceinline__ int32 mma_byte(uint32 word, int place) {
  return static_cast<int32>(static_cast<T>(word >> (8 * place)));
}

template <typename A, typename B>
DAIS_UNSEEN void mma_of_bytes(void* const* lanes, unsigned) {
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      auto& owner = *static_cast<ByteMmaLane*>(lanes[row % 8 * 4 + column / 2]);
      int32& total = owner.d[row / 8 * 2 + column % 2];
      for (int k = 0; k < 32; ++k) {
        const auto& a = *static_cast<ByteMmaLane*>(lanes[row % 8 * 4 + k % 16 / 4]);
        const auto& b = *static_cast<ByteMmaLane*>(lanes[column * 4 + k % 16 / 4]);
        total += mma_byte<A>(a.a[row / 8 + k / 16 * 2], k % 4) * mma_byte<B>(b.b[k / 16], k % 4);
      }
    }
}

template <typename A, typename B>
DAIS_UNSEEN void byte_mma_step(int32* d, const uint32* a, const uint32* b) {
  ByteMmaLane mine = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}, {d[0], d[1], d[2], d[3]}};
  hooks->warp(0xffffffffu, &mine, mma_of_bytes<A, B>, false,
              {__builtin_FILE(), __builtin_LINE()});
  for (int i = 0; i < 4; ++i) d[i] = mine.d[i];
}

}  // namespace dais_emulation
#endif

/// A and B are int8 or uint8; all lanes take part.
template <typename A, typename B>
__device__ __forceinline__ void mma_16x8x32(int32 (&d)[4], const uint32 (&a)[4],
                                            const uint32 (&b)[2]) {
#ifdef DAIS_EMULATED
  dais_emulation::byte_mma_step<A, B>(d, a, b);
#elif __CUDA_ARCH__ >= 800
#define DAIS_BYTE_MMA(left, right)                                                              \
  asm("mma.sync.aligned.m16n8k32.row.col.s32." left "." right ".s32 {%0, %1, %2, %3}, "         \
      "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                           \
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                                          \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
  constexpr bool left = A(-1) < A(0), right = B(-1) < B(0);  // whether they have signs
  if (left && right)
    DAIS_BYTE_MMA("s8", "s8");
  else if (left)
    DAIS_BYTE_MMA("s8", "u8");
  else if (right)
    DAIS_BYTE_MMA("u8", "s8");
  else
    DAIS_BYTE_MMA("u8", "u8");
#undef DAIS_BYTE_MMA
#else
  __trap();
#endif
}

// The same of floats of 8 bits, D in float. Needs compute capability 8.9; for 9.0 and 10.0 the compiler
// makes two instructions of f16 of it. Units may add products with fewer bits than a float has, so that
// long sums are better taken in pieces.

#ifdef DAIS_EMULATED
namespace dais_emulation {

template <typename A, typename B>
DAIS_UNSEEN void mma_of_float8(void* const* lanes, unsigned) {
  const auto number = [](auto kind, uint32 word, int place) {
    return to_float(decltype(kind){static_cast<uint8>(word >> (8 * place))});
  };
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      auto& owner = *static_cast<MmaLane*>(lanes[row % 8 * 4 + column / 2]);
      float& total = owner.d[row / 8 * 2 + column % 2];
      for (int k = 0; k < 32; ++k) {
        const auto& a = *static_cast<MmaLane*>(lanes[row % 8 * 4 + k % 16 / 4]);
        const auto& b = *static_cast<MmaLane*>(lanes[column * 4 + k % 16 / 4]);
        total += number(A{}, a.a[row / 8 + k / 16 * 2], k % 4) * number(B{}, b.b[k / 16], k % 4);
      }
    }
}

}  // namespace dais_emulation
#endif

template <typename T>
constexpr bool kFine = false;  ///< e4m3
template <>
constexpr bool kFine<f8e4m3> = true;

/// A and B are f8e4m3 or f8e5m2; all lanes take part.
template <typename A, typename B>
__device__ __forceinline__ void mma_16x8x32(float (&d)[4], const uint32 (&a)[4],
                                            const uint32 (&b)[2]) {
#ifdef DAIS_EMULATED
  dais_emulation::mma_step(d, a, b, dais_emulation::mma_of_float8<A, B>);
#elif __CUDA_ARCH__ >= 890
#define DAIS_FLOAT8_MMA(left, right)                                                            \
  asm("mma.sync.aligned.m16n8k32.row.col.f32." left "." right ".f32 {%0, %1, %2, %3}, "         \
      "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                           \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                          \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
  if (kFine<A> && kFine<B>)
    DAIS_FLOAT8_MMA("e4m3", "e4m3");
  else if (kFine<A>)
    DAIS_FLOAT8_MMA("e4m3", "e5m2");
  else if (kFine<B>)
    DAIS_FLOAT8_MMA("e5m2", "e4m3");
  else
    DAIS_FLOAT8_MMA("e5m2", "e5m2");
#undef DAIS_FLOAT8_MMA
#else
  __trap();
#endif
}
