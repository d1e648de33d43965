// Products with 4-bit weights on the 8-bit dot product instruction. Lanes are columns: one load
// gives eight numbers of the depth for each of sixteen columns, split into two vectors, and serves
// up to eight rows of activations. One row is bound by the stream of weights; many rows by the two
// dot product units, with panels of weights and rows of activations in the second-level cache.

#include "ops/matmul/nbits_block.h"

#if DAIS_ISA_LEVEL >= 2
#include <immintrin.h>
#endif

namespace dais::DAIS_ISA {

#if DAIS_ISA_LEVEL >= 2
namespace {

constexpr int64_t kRows = 8;
constexpr int64_t kPanelBlock = 8;

inline __m512i four_of(const int8_t* a) {
  int32_t word;
  __builtin_memcpy(&word, a, sizeof word);
  return _mm512_set1_epi32(word);
}

template <int rows>
void run_rows(const NbitsProduct& p, const uint8_t* panel, int64_t row, int64_t column) {
  const int64_t depth = p.blocks * p.block_size;
  const int8_t* a = p.a + row * depth;
  const float* scales = p.a_scales + row * p.blocks;
  const int32_t* sums = p.a_sums + row * p.blocks;
  const __m512i low = _mm512_set1_epi8(15);
  __m512 total[rows];
  for (int r = 0; r < rows; ++r) total[r] = _mm512_setzero_ps();
  for (int64_t block = 0; block < p.blocks; ++block) {
    const __m512 scale = _mm512_loadu_ps(panel);
    panel += 64;
    __m512 shift = _mm512_setzero_ps();
    if (p.zero_points) {
      shift = _mm512_loadu_ps(panel);
      panel += 64;
    }
    __m512i acc[rows];
    for (int r = 0; r < rows; ++r)
      acc[r] =
          p.zero_points ? _mm512_setzero_si512() : _mm512_set1_epi32(sums[r * p.blocks + block]);
    for (int64_t k = 0; k < p.block_size; k += 32, panel += 256) {
      _mm_prefetch(panel + 2048, _MM_HINT_T0);
      _mm_prefetch(panel + 2112, _MM_HINT_T0);
      _mm_prefetch(panel + 2176, _MM_HINT_T0);
      _mm_prefetch(panel + 2240, _MM_HINT_T0);
      __m512i w[8];
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
        const __m512i both = _mm512_loadu_si512(panel + v * 64);
        w[2 * v] = _mm512_and_si512(both, low);
        w[2 * v + 1] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
      }
      const int8_t* from = a + block * p.block_size + k;
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i)
          acc[r] = _mm512_dpbusd_epi32(acc[r], w[i], four_of(from + r * depth + 4 * i));
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const __m512 factor = _mm512_set1_ps(scales[r * p.blocks + block]);
      total[r] =
          _mm512_fmadd_ps(_mm512_cvtepi32_ps(acc[r]), _mm512_mul_ps(scale, factor), total[r]);
      if (p.zero_points) {
        const float sum = static_cast<float>(sums[r * p.blocks + block]);
        total[r] = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_set1_ps(sum), factor), shift, total[r]);
      }
    }
  }
  const int64_t count = p.columns - column < 16 ? p.columns - column : 16;
  const auto mask = static_cast<__mmask16>((1u << count) - 1);
  const __m512 bias = p.bias ? _mm512_maskz_loadu_ps(mask, p.bias + column) : _mm512_setzero_ps();
  for (int r = 0; r < rows; ++r)
    _mm512_mask_storeu_ps(p.c + (row + r) * p.columns + column, mask,
                          _mm512_add_ps(total[r], bias));
}

void run_group(const NbitsProduct& p, const uint8_t* panel, int64_t row, int64_t rows,
               int64_t column) {
  switch (rows) {
    case 1: return run_rows<1>(p, panel, row, column);
    case 2: return run_rows<2>(p, panel, row, column);
    case 3: return run_rows<3>(p, panel, row, column);
    case 4: return run_rows<4>(p, panel, row, column);
    case 5: return run_rows<5>(p, panel, row, column);
    case 6: return run_rows<6>(p, panel, row, column);
    case 7: return run_rows<7>(p, panel, row, column);
    default: return run_rows<8>(p, panel, row, column);
  }
}

}  // namespace

/// Panels [p0, p1) for all rows.
void nbits_panels(const NbitsProduct& p, int64_t p0, int64_t p1) {
  const int64_t groups = (p.rows + kRows - 1) / kRows;
  for (int64_t first = p0; first < p1; first += kPanelBlock) {
    const int64_t last = p1 - first < kPanelBlock ? p1 : first + kPanelBlock;
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t row = p.rows * g / groups, end = p.rows * (g + 1) / groups;
      for (int64_t i = first; i < last; ++i)
        run_group(p, p.panels + i * p.panel_bytes, row, end - row, i * 16);
    }
  }
}

/// Rounds one row of `depth` activations to 8 bits, block by block, behind it zeros up to a whole
/// block. `times` is what the sums are multiplied with.
void nbits_round_row(const float* x, int64_t depth, int64_t blocks, int64_t block_size,
                     int32_t times, int8_t* a, float* scales, int32_t* sums) {
  for (int64_t block = 0; block < blocks; ++block) {
    __m512 top = _mm512_setzero_ps();
    const auto load = [&](int64_t k) {
      const int64_t left = depth - (block * block_size + k);
      const auto mask = static_cast<__mmask16>(left >= 16  ? 0xFFFFu
                                               : left <= 0 ? 0u
                                                           : (1u << left) - 1);
      return _mm512_maskz_loadu_ps(mask, x + block * block_size + k);
    };
    for (int64_t k = 0; k < block_size; k += 16) top = _mm512_max_ps(top, _mm512_abs_ps(load(k)));
    const float most = _mm512_reduce_max_ps(top), scale = most / 127;
    // Rounded once, not twice as 1 / scale would be.
    const __m512 inverse = _mm512_set1_ps(scale > 0 ? 127 / most : 0);
    __m512i sum = _mm512_setzero_si512();
    for (int64_t k = 0; k < block_size; k += 16) {
      const __m512i rounded = _mm512_cvtps_epi32(_mm512_mul_ps(load(k), inverse));
      sum = _mm512_add_epi32(sum, rounded);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(a + block * block_size + k),
                       _mm512_cvtsepi32_epi8(rounded));
    }
    scales[block] = scale;
    sums[block] = times * _mm512_reduce_add_epi32(sum);
  }
}
#endif

}  // namespace dais::DAIS_ISA
