// Transposition of f32 matrices in blocks of 8x8, which fit the registers of every level; bound by
// the shuffle port, or by memory for large ones.

#include <cstdint>
#if DAIS_ISA_LEVEL >= 1
#include <immintrin.h>
#endif

namespace dais::DAIS_ISA {
namespace {

constexpr int64_t kBlock = 8;

void scalar_block(const float* from, int64_t rows, int64_t columns, int64_t from_stride, float* to,
                  int64_t to_stride) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) to[c * to_stride + r] = from[r * from_stride + c];
}

#if DAIS_ISA_LEVEL >= 1
void full_block(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  __m256 a[8], b[8];
  for (int i = 0; i < 8; ++i) a[i] = _mm256_loadu_ps(from + i * from_stride);
  for (int i = 0; i < 8; i += 2) {
    b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
    b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
    a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xEE);
    a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
    a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * to_stride, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * to_stride, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
  }
}
#else
void full_block(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  scalar_block(from, kBlock, kBlock, from_stride, to, to_stride);
}
#endif

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
