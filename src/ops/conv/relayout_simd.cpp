// Transposition of f32 matrices in blocks of 8x8, which fit the registers of every level; bound by
// the shuffle port, or by memory for large ones.

#include <cstdint>

#include "backends/cpu/turn.h"

namespace dais::DAIS_ISA {
namespace {

constexpr int64_t kBlock = 8;

void scalar_block(const float* from, int64_t rows, int64_t columns, int64_t from_stride, float* to,
                  int64_t to_stride) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) to[c * to_stride + r] = from[r * from_stride + c];
}

void full_block(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
#if DAIS_ISA_LEVEL >= 1
  turn_8x8(from, from_stride, to, to_stride);
#else
  scalar_block(from, kBlock, kBlock, from_stride, to, to_stride);
#endif
}

}  // namespace

void transpose(const float* from, int64_t rows, int64_t columns, int64_t from_stride, float* to,
               int64_t to_stride) {
  for (int64_t c = 0; c < columns; c += kBlock) {
    const int64_t width = columns - c < kBlock ? columns - c : kBlock;
    for (int64_t r = 0; r < rows; r += kBlock) {
      const int64_t height = rows - r < kBlock ? rows - r : kBlock;
      const float* source = from + r * from_stride + c;
      float* target = to + c * to_stride + r;
      if (width == kBlock && height == kBlock)
        full_block(source, from_stride, target, to_stride);
      else
        scalar_block(source, height, width, from_stride, target, to_stride);
    }
  }
}

}  // namespace dais::DAIS_ISA
