#pragma once

#include <cstdint>
#if DAIS_ISA_LEVEL >= 1
#include <immintrin.h>
#endif

/// Transposition within registers, for raw loops that are compiled once per instruction set.
namespace dais::DAIS_ISA {

#if DAIS_ISA_LEVEL >= 1
/// to[k * to_row + n] = from[n * from_row + k] for 8 of each.
inline void turn_8x8(const float* from, int64_t from_row, float* to, int64_t to_row) {
  __m256 a[8], b[8];
  for (int i = 0; i < 8; ++i) a[i] = _mm256_loadu_ps(from + i * from_row);
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
    _mm256_storeu_ps(to + i * to_row, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * to_row, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
  }
}
#endif

}  // namespace dais::DAIS_ISA
