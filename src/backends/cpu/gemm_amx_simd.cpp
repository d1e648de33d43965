// f32 matrix product on the bf16 tile unit. Each number is cut into three bf16 numbers of 8 bits
// that add up to it exactly; six of the nine partial products are kept, those left out being below
// the rounding of f32. That costs six tile products, which still beats the FMA units about twofold.
// Tiles of A (a block of rows) and of one panel of B lie in the second-level cache; 32x32 values
// of C are held in tiles while the depth runs, and the next panel is cut up meanwhile. Bound by the
// tile unit and its loads. Infinities and NaN cannot be cut: such blocks are left to the FMA loops.

#include "backends/cpu/gemm_block.h"

#if DAIS_ISA_LEVEL >= 3
#include <immintrin.h>
#endif

namespace dais::DAIS_ISA {

#if DAIS_ISA_LEVEL >= 3
void gemm_finish(const cpu::GemmBlock& g, int64_t row0, int64_t rows, int64_t column0,
                 int64_t columns);

namespace {

using cpu::GemmBlock;

constexpr int64_t kPanel = 32, kTileRows = 16, kStep = 32;
constexpr int64_t kRowBlock = 512, kDepthBlock = 256;
constexpr int64_t kPanelBlock = 16;  ///< so that C stays near while the depth runs
constexpr int64_t kTile = 512;       ///< bf16 numbers of one tile
constexpr int64_t kASplit = kRowBlock * kDepthBlock * 3, kBSplit = kPanel * kDepthBlock * 3;

struct alignas(64) TileConfig {
  uint8_t palette = 1, start = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

void configure() {
  TileConfig config;
  for (int i = 0; i < 8; ++i) {
    config.row_bytes[i] = 64;
    config.rows[i] = 16;
  }
  _tile_loadconfig(&config);
}

/// A vector's upper 8 bits, the next 8 and the last 8, each exact in bf16.
struct Cut {
  __m512 high, middle, low;
};

/// `broken` becomes NaN where x is infinite or NaN, as no difference to its upper bits exists then.
inline Cut cut(__m512 x, __m512& broken) {
  const __m512i top = _mm512_set1_epi32(static_cast<int>(0xFFFF0000u));
  const auto upper = [&](__m512 v) {
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(v), top));
  };
  Cut out;
  out.high = upper(x);
  const __m512 rest = _mm512_sub_ps(x, out.high);
  out.middle = upper(rest);
  out.low = _mm512_sub_ps(rest, out.middle);
  broken = _mm512_fmadd_ps(out.low, _mm512_setzero_ps(), broken);
  return out;
}

inline bool is_whole(__m512 broken) {
  return _mm512_cmp_ps_mask(broken, broken, _CMP_UNORD_Q) == 0;
}

/// 16 rows by 32 of the depth: three tiles, one after the other. Rows and depth beyond are zero.
void cut_a(const float* a, int64_t a_row, int64_t rows, int64_t depth, uint16_t* to,
           __m512& broken) {
  const auto mask = [](int64_t count) {
    return static_cast<__mmask16>(count >= 16 ? 0xFFFFu : count <= 0 ? 0u : (1u << count) - 1);
  };
  for (int64_t r = 0; r < kTileRows; ++r, a += a_row, to += kStep) {
    const __mmask16 left = r < rows ? mask(depth) : 0, right = r < rows ? mask(depth - 16) : 0;
    const Cut first = cut(_mm512_maskz_loadu_ps(left, a), broken);
    const Cut second = cut(_mm512_maskz_loadu_ps(right, a + 16), broken);
    const auto put = [&](int64_t part, __m512 low, __m512 high) {
      _mm512_storeu_si512(to + part * kTile,
                          reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
    };
    put(0, first.high, second.high);
    put(1, first.middle, second.middle);
    put(2, first.low, second.low);
  }
}

/// Cuts up a panel of B, two rows of the depth at a time, so that the work can be strewn among the
/// products of the panel before it: the vector units are idle there. Each 32 of the depth become
/// three tiles of the left 16 columns and three of the right ones; rows of tiles hold pairs of the
/// depth.
class PanelCutter {
 public:
  PanelCutter() = default;
  PanelCutter(const float* b, int64_t depth, uint16_t* to)
      : b_(b), depth_(depth), to_(to), pairs_((depth + kStep - 1) / kStep * (kStep / 2)) {}

  inline void run(int64_t count) {
    for (; count > 0 && pair_ < pairs_; --count) cut_pair();
  }
  void finish() { run(pairs_); }
  int64_t pairs() const { return pairs_; }
  bool whole() const {
    return is_whole(_mm512_add_ps(_mm512_add_ps(broken_[0], broken_[1]),
                                  _mm512_add_ps(broken_[2], broken_[3])));
  }

 private:
  inline void cut_pair() {
    const auto pair = [](__m512 even, __m512 odd) {
      return _mm512_mask_mov_epi16(_mm512_srli_epi32(_mm512_castps_si512(even), 16), 0xAAAAAAAA,
                                   _mm512_castps_si512(odd));
    };
    const int64_t k = 2 * pair_, step = pair_ / (kStep / 2), row = pair_ % (kStep / 2);
    const float* from = b_ + k * kPanel;
    uint16_t* to = to_ + step * 6 * kTile + row * kStep;
    const __m512 zero = _mm512_setzero_ps();
    for (int64_t half = 0; half < 2; ++half, from += 16, to += 3 * kTile) {
      const Cut even = cut(k < depth_ ? _mm512_loadu_ps(from) : zero, broken_[half]);
      const Cut odd =
          cut(k + 1 < depth_ ? _mm512_loadu_ps(from + kPanel) : zero, broken_[2 + half]);
      _mm512_storeu_si512(to, pair(even.high, odd.high));
      _mm512_storeu_si512(to + kTile, pair(even.middle, odd.middle));
      _mm512_storeu_si512(to + 2 * kTile, pair(even.low, odd.low));
    }
    ++pair_;
  }

  const float* b_ = nullptr;
  int64_t depth_ = 0;
  uint16_t* to_ = nullptr;
  int64_t pairs_ = 0, pair_ = 0;
  __m512 broken_[4] = {};  ///< several, as each is a chain of sums
};

/// Tiles of A and B, `steps` of the depth; what is cut up meanwhile, so many pairs per product.
struct Operands {
  const uint16_t* a;
  int64_t group_stride;
  const uint16_t* b;
  int64_t steps;
  PanelCutter& next;
  int64_t pairs;
};

/// C tiles 0 to 3 hold 32x32 values (or 16x32 with one group of rows); 4 and 5 A, 6 and 7 B.
template <int groups>
inline void multiply() {
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  if constexpr (groups == 2) {
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}

template <int groups>
void run_tiles(const Operands& operands, const float* from, float* to, int64_t row) {
  const auto stride = static_cast<size_t>(row) * sizeof(float);
  if (from) {
    _tile_loadd(0, from, stride);
    _tile_loadd(1, from + 16, stride);
    if constexpr (groups == 2) {
      _tile_loadd(2, from + 16 * row, stride);
      _tile_loadd(3, from + 16 * row + 16, stride);
    }
  } else {
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (groups == 2) {
      _tile_zero(2);
      _tile_zero(3);
    }
  }
  const uint16_t *a = operands.a, *b = operands.b;
  const auto load_a = [&](const uint16_t* tile) __attribute__((always_inline)) {
    _tile_loadd(4, tile, 64);
    if constexpr (groups == 2) _tile_loadd(5, tile + operands.group_stride, 64);
  };
  const auto load_b = [&](const uint16_t* tile) __attribute__((always_inline)) {
    _tile_loadd(6, tile, 64);
    _tile_loadd(7, tile + 3 * kTile, 64);
  };
  const auto step = [&]() __attribute__((always_inline)) {
    multiply<groups>();
    operands.next.run(operands.pairs);
  };
  for (int64_t k = 0; k < operands.steps; ++k, a += 3 * kTile, b += 6 * kTile) {
    load_a(a);
    load_b(b + 2 * kTile);
    step();
    load_b(b + kTile);
    step();
    load_a(a + kTile);
    step();
    load_b(b);
    step();
    load_a(a + 2 * kTile);
    step();
    load_a(a);
    step();
  }
  _tile_stored(0, to, stride);
  _tile_stored(1, to + 16, stride);
  if constexpr (groups == 2) {
    _tile_stored(2, to + 16 * row, stride);
    _tile_stored(3, to + 16 * row + 16, stride);
  }
}

/// C values of up to 32 rows and 32 columns, through a buffer where they are not whole.
void run_values(const GemmBlock& g, const Operands& operands, int64_t row, int64_t rows,
                int64_t column, int64_t columns, bool add) {
  float* c = g.c + row * g.c_row + column;
  const bool two = rows > kTileRows;
  if (columns == kPanel && rows == (two ? 2 : 1) * kTileRows) {
    const float* from = add ? c : nullptr;
    return two ? run_tiles<2>(operands, from, c, g.c_row)
               : run_tiles<1>(operands, from, c, g.c_row);
  }
  alignas(64) float values[2 * kTileRows * kPanel];
  if (add)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t n = 0; n < columns; ++n) values[r * kPanel + n] = c[r * g.c_row + n];
  const float* from = add ? values : nullptr;
  two ? run_tiles<2>(operands, from, values, kPanel) : run_tiles<1>(operands, from, values, kPanel);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t n = 0; n < columns; ++n) c[r * g.c_row + n] = values[r * kPanel + n];
}

int64_t parts(int64_t count, int64_t most) { return (count + most - 1) / most; }

/// Rows [m0, m1) of panels [p0, p1), depth [k0, k1). False: something is not finite.
bool run_depth(const GemmBlock& g, int64_t m0, int64_t m1, int64_t p0, int64_t p1, int64_t k0,
               int64_t k1, uint16_t* scratch) {
  const int64_t steps = parts(k1 - k0, kStep), group_stride = steps * 3 * kTile;
  __m512 broken = _mm512_setzero_ps();
  for (int64_t m = m0; m < m1; m += kTileRows)
    for (int64_t s = 0; s < steps; ++s)
      cut_a(g.a + m * g.a_row + k0 + s * kStep, g.a_row, m1 - m, k1 - k0 - s * kStep,
            scratch + (m - m0) / kTileRows * group_stride + s * 3 * kTile, broken);
  if (!is_whole(broken)) return false;
  const auto cutter = [&](int64_t p) {
    return PanelCutter(g.b + p * g.panel + k0 * kPanel, k1 - k0,
                       scratch + kASplit + (p - p0) % 2 * kBSplit);
  };
  const int64_t products = 6 * steps * parts(m1 - m0, 2 * kTileRows);
  PanelCutter next = cutter(p0);
  for (int64_t p = p0; p < p1; ++p) {
    next.finish();
    if (!next.whole()) return false;
    const uint16_t* b_tiles = scratch + kASplit + (p - p0) % 2 * kBSplit;
    next = p + 1 < p1 ? cutter(p + 1) : PanelCutter();
    const int64_t column = p * kPanel;
    const int64_t columns = g.columns - column < kPanel ? g.columns - column : kPanel;
    for (int64_t m = m0; m < m1; m += 2 * kTileRows) {
      const int64_t rows = m1 - m < 2 * kTileRows ? m1 - m : 2 * kTileRows;
      const uint16_t* a_tiles = scratch + (m - m0) / kTileRows * group_stride;
      run_values(g, {a_tiles, group_stride, b_tiles, steps, next, parts(next.pairs(), products)}, m,
                 rows, column, columns, k0 > 0);
      if (k1 == g.depth && g.step_count > 0) gemm_finish(g, m, rows, column, columns);
    }
  }
  return true;
}

}  // namespace

/// Bytes of scratch memory of one thread, 64-byte aligned.
int64_t gemm_tiles_scratch() { return (kASplit + 2 * kBSplit) * 2; }

/// Panels [p0, p1) of a packed b, for rows [m0, m1). False, with c in any state: the operands hold
/// infinities or NaN.
bool gemm_tiles(const GemmBlock& g, int64_t m0, int64_t m1, int64_t p0, int64_t p1,
                uint16_t* scratch) {
  configure();
  const int64_t pairs = parts(m1 - m0, 2 * kTileRows);
  const int64_t row_parts = parts(pairs, kRowBlock / (2 * kTileRows));
  bool fine = true;
  for (int64_t p = p0; p < p1 && fine; p += kPanelBlock)
    for (int64_t i = 0; i < row_parts && fine; ++i) {
      const int64_t first = m0 + pairs * i / row_parts * 2 * kTileRows;
      const int64_t end = m0 + pairs * (i + 1) / row_parts * 2 * kTileRows;
      const int64_t last = p1 - p < kPanelBlock ? p1 : p + kPanelBlock;
      for (int64_t k = 0; k < g.depth && fine; k += kDepthBlock)
        fine = run_depth(g, first, end < m1 ? end : m1, p, last, k,
                         g.depth - k < kDepthBlock ? g.depth : k + kDepthBlock, scratch);
    }
  _tile_release();
  return fine;
}
#endif

}  // namespace dais::DAIS_ISA
