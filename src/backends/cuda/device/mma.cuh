#pragma once

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

template <typename T>
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
      auto& owner = *static_cast<MmaLane<T>*>(lanes[row % 8 * 4 + column / 2]);
      float& total = owner.d[row / 8 * 2 + column % 2];
      for (int k = 0; k < 16; ++k) {
        const auto& a = *static_cast<MmaLane<T>*>(lanes[row % 8 * 4 + k % 8 / 2]);
        const auto& b = *static_cast<MmaLane<T>*>(lanes[column * 4 + k % 8 / 2]);
        total += mma_half<T>(a.a[row / 8 + k / 8 * 2], k % 2) * mma_half<T>(b.b[k / 8], k % 2);
      }
    }
}

template <typename T>
DAIS_UNSEEN void mma_step(float* d, const uint32* a, const uint32* b) {
  MmaLane<T> mine = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}, {d[0], d[1], d[2], d[3]}};
  hooks->warp(0xffffffffu, &mine, mma<T>, false, {__builtin_FILE(), __builtin_LINE()});
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
  dais_emulation::mma_step<T>(d, a, b);
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

/// Two elements as the instruction takes them.
template <typename T>
__device__ __forceinline__ uint32 mma_pair(float low, float high) {
  return from_float<T>(low).bits | static_cast<uint32>(from_float<T>(high).bits) << 16;
}
