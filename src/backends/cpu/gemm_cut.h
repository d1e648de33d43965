#pragma once

#include "backends/cpu/tiles.h"

/// f32 matrices cut into bf16 tiles: each number becomes `parts` bf16 numbers of falling size.
/// Three add up to it exactly (8 bits each, by truncation, so that nothing overflows). Infinities
/// and NaN leave a NaN among the parts. Only for _simd.cpp files at level 3.
namespace dais::DAIS_ISA {

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileDepth = 32;
constexpr int64_t kTile = kTileRows * kTileDepth;  ///< bf16 numbers of one tile
constexpr int64_t kTilePanel = 32;                 ///< columns of a panel of packed B

/// Upper halves of the numbers of two vectors, in the order that `places` names.
inline __m512i upper_halves(__m512 x, __m512i places, __m512 y) {
  return _mm512_permutex2var_epi16(_mm512_castps_si512(x), places, _mm512_castps_si512(y));
}

/// What is left of x without its upper half.
inline __m512 lower_part(__m512 x) {
  const __m512i top = _mm512_set1_epi32(static_cast<int>(0xFFFF0000u));
  return _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), top)));
}

/// One row of `parts` tiles, kTile apart.
template <int parts>
inline void cut_row(__m512 x, __m512 y, __m512i places, uint16_t* to) {
  for (int part = 0; part < parts; ++part) {
    _mm512_store_si512(to + part * kTile, upper_halves(x, places, y));
    if (part + 1 == parts) break;
    x = lower_part(x);
    y = lower_part(y);
  }
}

/// Rows of A beside each other: the first vector's halves, then the second's.
inline __m512i places_in_turn() {
  alignas(64) uint16_t places[32];
  for (uint16_t i = 0; i < 32; ++i) places[i] = static_cast<uint16_t>(2 * i + 1);
  settle_memory();
  return _mm512_load_si512(places);
}

/// Rows of B in pairs, as the tile unit takes them.
inline __m512i places_in_pairs() {
  alignas(64) uint16_t places[32];
  for (uint16_t i = 0; i < 32; ++i) places[i] = static_cast<uint16_t>(i % 2 == 0 ? i + 1 : 32 + i);
  settle_memory();
  return _mm512_load_si512(places);
}

inline __mmask16 first_of_16(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xFFFFu : count <= 0 ? 0u : (1u << count) - 1);
}

/// 16 rows of A, of which those of `present` exist; where the others point must be readable too.
struct StripRows {
  const float* at[kTileRows];
  uint32_t present = 0;
};

/// 32 of the depth of 16 rows, from `first` on: `parts` tiles. Rows that do not exist and depth
/// beyond what is given are zero.
template <int parts>
void cut_a(const StripRows& rows, int64_t first, int64_t depth, uint16_t* to) {
  const __m512i places = places_in_turn();
  if (rows.present == 0xFFFF && depth >= kTileDepth) {
    for (int64_t r = 0; r < kTileRows; ++r, to += kTileDepth)
      cut_row<parts>(_mm512_loadu_ps(rows.at[r] + first), _mm512_loadu_ps(rows.at[r] + first + 16),
                     places, to);
    return;
  }
  const __mmask16 left = first_of_16(depth), right = first_of_16(depth - 16);
  for (int64_t r = 0; r < kTileRows; ++r, to += kTileDepth) {
    const bool present = (rows.present >> r & 1) != 0;
    cut_row<parts>(_mm512_maskz_loadu_ps(present ? left : 0, rows.at[r] + first),
                   _mm512_maskz_loadu_ps(present ? right : 0, rows.at[r] + first + 16), places, to);
  }
}

/// Cuts up a stretch of a panel of B, two rows of the depth at a time, so that the work can be
/// strewn among products: the vector units are idle there. Each 32 of the depth become `parts`
/// tiles of the left 16 columns and as many of the right ones.
template <int parts>
class PanelCutter {
 public:
  PanelCutter() = default;
  PanelCutter(const float* b, int64_t depth, uint16_t* to)
      : b_(b), to_(to), depth_(depth), pairs_((depth + 1) / 2), places_(places_in_pairs()) {
    const int64_t all = (depth + kTileDepth - 1) / kTileDepth * kTileRows;
    for (int64_t pair = pairs_; pair < all; ++pair)
      for (int part = 0; part < 2 * parts; ++part)
        _mm512_store_si512(row_of(pair) + part * kTile, _mm512_setzero_si512());
  }

  int64_t pairs() const { return pairs_; }
  void finish() { run(pairs_); }
  inline void run(int64_t count) {
    for (; count > 0 && pair_ < pairs_; --count) cut_pair();
  }

 private:
  uint16_t* row_of(int64_t pair) const {
    return to_ + pair / kTileRows * 2 * parts * kTile + pair % kTileRows * kTileDepth;
  }
  inline void cut_pair() {
    const float* from = b_ + 2 * pair_ * kTilePanel;
    uint16_t* to = row_of(pair_);
    const auto odd = static_cast<__mmask16>(2 * pair_ + 1 < depth_ ? 0xFFFF : 0);
    for (int half = 0; half < 2; ++half, from += 16, to += parts * kTile)
      cut_row<parts>(_mm512_loadu_ps(from), _mm512_maskz_loadu_ps(odd, from + kTilePanel), places_,
                     to);
    ++pair_;
  }

  const float* b_ = nullptr;
  uint16_t* to_ = nullptr;
  int64_t depth_ = 0, pairs_ = 0, pair_ = 0;
  __m512i places_ = {};
};

}  // namespace dais::DAIS_ISA
