// bf16 products on the tile unit. Stretches of both factors are brought into tiles, wherever their
// numbers lie: lines along the depth are copied (A) or turned in pairs (B), lines across it are put
// together in pairs (B) or turned after that (A). 32 rows by 32 columns are then multiplied with
// all sums in tiles: rows from the first-level cache, columns from the second. Sums of a part lie
// in an array of tiles between stretches of the depth. Bound by the tile unit where factors are
// used some hundred times, else by bringing them into tiles.

#include "backends/cpu/half_block.h"

#if DAIS_ISA_LEVEL >= 3
#include "backends/cpu/tiles.h"
#endif

namespace dais::DAIS_ISA {

#if DAIS_ISA_LEVEL >= 3
namespace {

using cpu::HalfBlock;
using cpu::HalfFactor;
using cpu::HalfPart;
using cpu::HalfWindows;

constexpr int64_t kSide = 16, kDeep = 32, kTile = kSide * kDeep, kSumTile = kSide * kSide;

inline int64_t up(int64_t count, int64_t to) { return (count + to - 1) / to; }
inline __mmask32 first_of_32(int64_t count) {
  return count >= 32 ? 0xFFFFFFFFu : count <= 0 ? 0u : (1u << count) - 1;
}
inline __mmask16 first_of_16(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xFFFFu : count <= 0 ? 0u : (1u << count) - 1);
}

/// Where consecutive lines of a factor begin. `keep` is 0 for lines that do not exist and for cells
/// in the padding, of which nothing is read.
template <int count>
class Lines {
 public:
  Lines(const HalfFactor& from, int64_t first, int64_t end) : from_(from) {
    const HalfWindows* w = from.windows;
    int64_t p = 0, q = 0, image = 0;
    if (w) {
      q = first % w->cells[1];
      p = first / w->cells[1] % w->cells[0];
      image = first / (w->cells[0] * w->cells[1]);
    }
    whole = first + count <= end;
    for (int i = 0; i < count; ++i) {
      exists_[i] = first + i < end;
      if (!w) {
        at[i] = exists_[i] ? from.data + (first + i) * from.line : from.data;
        keep[i] = exists_[i] ? 0xFFFFFFFFu : 0;
        continue;
      }
      row_[i] = static_cast<int32_t>(p * w->step[0] + w->start[0]);
      column_[i] = static_cast<int32_t>(q * w->step[1] + w->start[1]);
      image_[i] = image * w->size[0];
      if (++q < w->cells[1]) continue;
      q = 0;
      if (++p < w->cells[0]) continue;
      p = 0;
      ++image;
    }
  }

  /// Turns to the place in the lines, a multiple of 16 numbers; gives the offset behind `at` and
  /// how many numbers follow there.
  inline int64_t go(int64_t place, int64_t length, int64_t& offset) {
    const HalfWindows* w = from_.windows;
    if (!w) {
      offset = place;
      return length - place;
    }
    const int64_t padded = cpu::half_padded(w->channels), tap = place / padded;
    offset = place - tap * padded;
    if (tap != tap_ && place < length) set_tap(*w, tap);
    return place < length ? w->channels - offset : 0;
  }

  const uint16_t* at[count];
  __mmask32 keep[count];
  bool whole;  ///< all of them are there

 private:
  void set_tap(const HalfWindows& w, int64_t tap) {
    tap_ = tap;
    const auto down = static_cast<int32_t>(tap / w.kernel[1] * w.tap_step[0]);
    const auto across = static_cast<int32_t>(tap % w.kernel[1] * w.tap_step[1]);
    const bool even = w.divide[0] == 1 && w.divide[1] == 1;
    uint32_t found = 0xFFFFFFFFu;
    for (int i = 0; i < count; ++i) {
      int64_t row = row_[i] + down, column = column_[i] + across;
      bool inside = exists_[i] && row >= 0 && column >= 0;
      if (!even) {
        inside = inside && row % w.divide[0] == 0 && column % w.divide[1] == 0;
        row /= w.divide[0];
        column /= w.divide[1];
      }
      inside = inside && row < w.size[0] && column < w.size[1];
      at[i] = inside ? from_.data + ((image_[i] + row) * w.size[1] + column) * w.pixel : from_.data;
      keep[i] = inside ? 0xFFFFFFFFu : 0;
      found &= keep[i];
    }
    whole = found != 0;
  }

  const HalfFactor& from_;
  bool exists_[count];
  int32_t row_[count], column_[count];
  int64_t image_[count], tap_ = -1;
};

/// Turns 16 rows of 16 numbers of 32 bits.
inline void turn(__m512i (&v)[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0xDD);
    t[i + 8] = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0xDD);
  }
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    v[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xDD);
    v[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    v[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xDD);
  }
}

inline void store_tile(const __m512i (&v)[16], uint16_t* to) {
  for (int i = 0; i < 16; ++i) _mm512_store_si512(to + i * kDeep, v[i]);
}

/// 32 numbers of each of 16 lines: a tile, for B turned.
inline void bring_along(Lines<16>& lines, int64_t place, int64_t length, bool turned,
                        uint16_t* to) {
  int64_t offset;
  const __mmask32 mask = first_of_32(lines.go(place, length, offset));
  __m512i v[16];
  if (lines.whole && mask == 0xFFFFFFFFu)
    for (int i = 0; i < 16; ++i) v[i] = _mm512_loadu_si512(lines.at[i] + offset);
  else
    for (int i = 0; i < 16; ++i)
      v[i] = _mm512_maskz_loadu_epi16(mask & lines.keep[i], lines.at[i] + offset);
  if (turned) turn(v);
  store_tile(v, to);
}

/// 16 numbers of each of 32 lines, two lines in turn: a tile, for A turned.
inline void bring_across(Lines<32>& lines, int64_t place, int64_t length, bool turned,
                         uint16_t* to) {
  int64_t offset;
  const __mmask16 mask = first_of_16(lines.go(place, length, offset));
  const auto pair = [](__m256i first, __m256i second) {
    return _mm512_or_si512(_mm512_cvtepu16_epi32(first),
                           _mm512_slli_epi32(_mm512_cvtepu16_epi32(second), 16));
  };
  __m512i v[16];
  if (lines.whole && mask == 0xFFFF) {
    const auto all = [&](int i) {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lines.at[i] + offset));
    };
    for (int i = 0; i < 16; ++i) v[i] = pair(all(2 * i), all(2 * i + 1));
  } else {
    const auto some = [&](int i) {
      return _mm256_maskz_loadu_epi16(mask & static_cast<__mmask16>(lines.keep[i]),
                                      lines.at[i] + offset);
    };
    for (int i = 0; i < 16; ++i) v[i] = pair(some(2 * i), some(2 * i + 1));
  }
  if (turned) turn(v);
  store_tile(v, to);
}

/// A stretch of a factor, as tiles: [16 rows or columns][step of the depth].
struct Stretch {
  int64_t first, end;  ///< rows or columns...
  int64_t all;         ///< ...of so many
  int64_t k0, steps, depth;
  uint16_t* tiles;

  int64_t sides() const { return 2 * up(end - first, 2 * kSide); }
};

/// Lines that run along the depth.
void bring_lines_along(const HalfFactor& from, const Stretch& to, bool turned) {
  for (int64_t side = 0; side < to.sides(); ++side) {
    Lines<16> lines(from, to.first + side * kSide, to.all);
    for (int64_t s = 0; s < to.steps; ++s)
      bring_along(lines, to.k0 + s * kDeep, to.depth, turned,
                  to.tiles + (side * to.steps + s) * kTile);
  }
}

/// Lines that run across it.
void bring_lines_across(const HalfFactor& from, const Stretch& to, bool turned) {
  for (int64_t s = 0; s < to.steps; ++s) {
    Lines<32> lines(from, to.k0 + s * kDeep, to.depth);
    for (int64_t side = 0; side < to.sides(); ++side)
      bring_across(lines, to.first + side * kSide, to.all, turned,
                   to.tiles + (side * to.steps + s) * kTile);
  }
}

/// Two sides of A times two of B: tiles 0 to 3 are sums, 4 and 5 A's, 6 and 7 B's.
inline void multiply(const uint16_t* a, const uint16_t* b, int64_t steps, float* sums, bool fresh) {
  const uint16_t *a1 = a + steps * kTile, *b1 = b + steps * kTile;
  settle_memory();
  if (fresh) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, sums, 64);
    _tile_loadd(1, sums + kSumTile, 64);
    _tile_loadd(2, sums + 2 * kSumTile, 64);
    _tile_loadd(3, sums + 3 * kSumTile, 64);
  }
  for (int64_t s = 0; s < steps; ++s) {
    _tile_loadd(4, a + s * kTile, 64);
    _tile_loadd(6, b + s * kTile, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b1 + s * kTile, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a1 + s * kTile, 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + kSumTile, 64);
  _tile_stored(2, sums + 2 * kSumTile, 64);
  _tile_stored(3, sums + 3 * kSumTile, 64);
  settle_memory();
}

/// One tile of sums goes to C.
void store_sums(const HalfBlock& g, const float* sums, int64_t row, int64_t column) {
  const int64_t rows = g.rows - row < kSide ? g.rows - row : kSide, left = g.columns - column;
  if (rows <= 0 || left <= 0) return;
  const __mmask16 mask = first_of_16(left);
  __m512 bias = _mm512_setzero_ps();
  if (g.bias)
    bias = _mm512_castsi512_ps(_mm512_slli_epi32(
        _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, g.bias + column)), 16));
  if (g.wide_bias) bias = _mm512_maskz_loadu_ps(mask, g.wide_bias + column);
  for (int64_t r = 0; r < rows; ++r) {
    const __m512 v = _mm512_add_ps(_mm512_load_ps(sums + r * kSide), bias);
    const int64_t at = (row + r) * g.c_row + column;
    if (g.c_half)
      _mm256_mask_storeu_epi16(static_cast<uint16_t*>(g.c) + at, mask,
                               reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(v)));
    else
      _mm512_mask_storeu_ps(static_cast<float*>(g.c) + at, mask, v);
  }
}

/// One side of A times `count` sides of B, 2 or 4: tiles 0 to 3 are sums, 4 A's, 5 to 7 take turns
/// for B.
template <int count>
inline void multiply_side(const uint16_t* a, const uint16_t* b, int64_t steps, float* sums) {
  const int64_t next = steps * kTile;
  settle_memory();
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (count == 4) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t s = 0; s < steps; ++s, a += kTile, b += kTile) {
    _tile_loadd(4, a, 64);
    _tile_loadd(5, b, 64);
    _tile_dpbf16ps(0, 4, 5);
    _tile_loadd(6, b + next, 64);
    _tile_dpbf16ps(1, 4, 6);
    if constexpr (count == 4) {
      _tile_loadd(7, b + 2 * next, 64);
      _tile_dpbf16ps(2, 4, 7);
      _tile_loadd(5, b + 3 * next, 64);
      _tile_dpbf16ps(3, 4, 5);
    }
  }
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + kSumTile, 64);
  if constexpr (count == 4) {
    _tile_stored(2, sums + 2 * kSumTile, 64);
    _tile_stored(3, sums + 3 * kSumTile, 64);
  }
  settle_memory();
}

constexpr int64_t kASize = cpu::kHalfRows * cpu::kHalfDepth;
constexpr int64_t kBSize = cpu::kHalfHeld;

}  // namespace

int64_t half_gemm_scratch() {
  return (kASize + kBSize) * static_cast<int64_t>(sizeof(uint16_t)) +
         cpu::kHalfSums * static_cast<int64_t>(sizeof(float));
}

void half_gemm_begin() { configure_whole_tiles(); }
void half_gemm_end() { _tile_release(); }

/// `held`: columns of B are in the scratch memory already, from the call before, which they are
/// when they fit for the whole depth (cpu::half_holds).
void half_gemm_part(const HalfBlock& g, const HalfPart& part, bool held, void* scratch) {
  auto* a = static_cast<uint16_t*>(scratch);
  uint16_t* const first_b = a + kASize;
  auto* sums = reinterpret_cast<float*>(first_b + kBSize);
  const bool holds = cpu::half_holds(part, g.depth);
  for (int64_t k = 0; k < g.depth; k += cpu::kHalfDepth) {
    const int64_t rest = g.depth - k;
    const int64_t steps = up(rest < cpu::kHalfDepth ? rest : cpu::kHalfDepth, kDeep);
    const Stretch rows{part.m0, part.m1, g.rows, k, steps, g.depth, a};
    uint16_t* b = holds ? first_b + up(part.n1 - part.n0, 2 * kSide) * 2 * kSide * k : first_b;
    const Stretch columns{part.n0, part.n1, g.columns, k, steps, g.depth, b};
    if (!held) {
      if (g.b.turned)
        bring_lines_along(g.b, columns, true);
      else
        bring_lines_across(g.b, columns, false);
    }
    if (g.a.turned)
      bring_lines_across(g.a, rows, true);
    else
      bring_lines_along(g.a, rows, false);
    const bool last = rest <= cpu::kHalfDepth;
    float* at = sums;
    for (int64_t i = 0; i < rows.sides(); i += 2)
      for (int64_t j = 0; j < columns.sides(); j += 2, at += last && k == 0 ? 0 : 4 * kSumTile) {
        multiply(a + i * steps * kTile, b + j * steps * kTile, steps, at, k == 0);
        if (!last) continue;
        for (int64_t t = 0; t < 4; ++t)
          store_sums(g, at + t * kSumTile, part.m0 + (i + t / 2) * kSide,
                     part.n0 + (j + t % 2) * kSide);
      }
  }
}

/// Columns [first, end), beginning at a multiple of 32, of a factor B in tiles for
/// half_gemm_packed: [16 columns][step of the depth].
void half_pack(const HalfFactor& b, int64_t depth, int64_t columns, int64_t first, int64_t end,
               uint16_t* packed) {
  const int64_t steps = up(depth, kDeep);
  const Stretch to{first, end, columns, 0, steps, depth, packed + first / kSide * steps * kTile};
  if (b.turned)
    bring_lines_along(b, to, true);
  else
    bring_lines_across(b, to, false);
}

/// The whole product of few rows with a packed B; lines of A run along the depth, of which there
/// are at most cpu::kHalfMostDepth.
void half_gemm_packed(const HalfBlock& g, const uint16_t* packed, void* scratch) {
  auto* a = static_cast<uint16_t*>(scratch);
  auto* sums = reinterpret_cast<float*>(a + kASize + kBSize);
  const int64_t steps = up(g.depth, kDeep), sides = 2 * up(g.columns, 2 * kSide);
  for (int64_t row = 0; row < g.rows; row += kSide) {
    bring_lines_along(g.a, {row, row + 1, g.rows, 0, steps, g.depth, a}, false);
    for (int64_t side = 0; side < sides;) {
      const bool four = side + 4 <= sides;
      const uint16_t* b = packed + side * steps * kTile;
      if (four)
        multiply_side<4>(a, b, steps, sums);
      else
        multiply_side<2>(a, b, steps, sums);
      const int64_t end = side + (four ? 4 : 2);
      for (float* at = sums; side < end; ++side, at += kSumTile)
        store_sums(g, at, row, side * kSide);
    }
  }
}
#endif

}  // namespace dais::DAIS_ISA
