// f32 matrix product. A register tile of kRows x 2 vectors runs down the depth, reading one panel
// of B (two vectors wide) and broadcasting A from where it lies. Bound by the two FMA units for
// tall tiles; for one to three rows by the stream of B, which is read once, front to back, with
// several sums per value to hide the latency of FMA. Depth is cut so that a panel and a block of
// rows of A stay in the second-level cache.

#include "backends/cpu/gemm_steps.h"
#include "backends/cpu/turn.h"

namespace dais::DAIS_ISA {
namespace {

using cpu::GemmBlock;

constexpr int kPanel = 2 * kLanes;
constexpr int kRows = DAIS_ISA_LEVEL >= 2 ? 12 : DAIS_ISA_LEVEL == 1 ? 6 : 4;
constexpr int64_t kDepthBlock = 768;
constexpr int64_t kRowBlock = 240;
constexpr int64_t kPanelBlock = 512 / kPanel;

struct Tile {
  const float* a;
  int64_t a_row;
  const float* b;
  int64_t b_row;
  int64_t depth;
  float* c;
  int64_t c_row;
  int64_t columns;    // at most kPanel
  bool add;           // to what c holds
  const float* next;  // memory to fetch meanwhile, or null
};

template <bool whole>
inline Vf load_b(const float* b, int64_t columns) {
  if constexpr (whole) return load(b);
  return load_first(b, columns < 0 ? 0 : columns);
}

/// `phases` independent sums per value; `whole`: all kPanel columns of b may be read.
template <int rows, int phases, bool whole>
void run_tile(const Tile& t) {
  Vf acc[phases][rows][2];
  for (int p = 0; p < phases; ++p)
    for (int r = 0; r < rows; ++r) acc[p][r][0] = acc[p][r][1] = all(0);
  const float* b = t.b;
  const float* a = t.a;
  const int64_t right = t.columns - kLanes;
  const auto step = [&](int p, int64_t k) __attribute__((always_inline)) {
    const Vf b0 = load_b<whole>(b, t.columns), b1 = load_b<whole>(b + kLanes, right);
    b += t.b_row;
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const Vf x = all(a[r * t.a_row + k]);
      acc[p][r][0] = fma(x, b0, acc[p][r][0]);
      acc[p][r][1] = fma(x, b1, acc[p][r][1]);
    }
  };
  int64_t k = 0;
  if constexpr (phases > 1) {
    for (; k + phases <= t.depth; k += phases)
#pragma GCC unroll 4
      for (int p = 0; p < phases; ++p) step(p, k + p);
    for (; k < t.depth; ++k) step(0, k);
    for (int p = 1; p < phases; ++p)
      for (int r = 0; r < rows; ++r)
        for (int h = 0; h < 2; ++h) acc[0][r][h] = add(acc[0][r][h], acc[p][r][h]);
  } else {
    const char* next = reinterpret_cast<const char*>(t.next);
    for (; k + 4 <= t.depth; k += 4) {
      if (next) {
        _mm_prefetch(next, _MM_HINT_T1);
        next += 64;
      }
#pragma GCC unroll 4
      for (int p = 0; p < 4; ++p) step(0, k + p);
    }
    for (; k < t.depth; ++k) step(0, k);
  }
  for (int r = 0; r < rows; ++r) {
    float* c = t.c + r * t.c_row;
    for (int h = 0; h < 2; ++h) {
      const int64_t count = t.columns - h * kLanes;
      if (count <= 0) break;
      Vf value = acc[0][r][h];
      float* to = c + h * kLanes;
      if (count >= kLanes) {
        store(to, t.add ? add(value, load(to)) : value);
      } else {
        store_first(to, t.add ? add(value, load_first(to, count)) : value, count);
      }
    }
  }
}

using RunTile = void (*)(const Tile&);

template <int rows>
RunTile pick(bool whole) {
  constexpr int phases = rows == 1 ? 4 : rows <= 3 ? 2 : 1;
  return whole ? run_tile<rows, phases, true> : run_tile<rows, phases, false>;
}

RunTile tile_of(int64_t rows, bool whole) {
  switch (rows) {
    case 1: return pick<1>(whole);
    case 2: return pick<2>(whole);
    case 3: return pick<3>(whole);
    case 4: return pick<4>(whole);
#if DAIS_ISA_LEVEL >= 1
    case 5: return pick<5>(whole);
    case 6: return pick<6>(whole);
#endif
#if DAIS_ISA_LEVEL >= 2
    case 7: return pick<7>(whole);
    case 8: return pick<8>(whole);
    case 9: return pick<9>(whole);
    case 10: return pick<10>(whole);
    case 11: return pick<11>(whole);
    default: return pick<12>(whole);
#else
    default: return pick<kRows>(whole);
#endif
  }
}

/// Steps over a tile of C that was just stored.
void finish(const GemmBlock& g, int64_t row0, int64_t rows, int64_t column0, int64_t columns) {
  for (int64_t n = column0; n < column0 + columns; n += kLanes) {
    const int64_t rest = column0 + columns - n;
    run_steps(g, {g.c + row0 * g.c_row + n, g.c_row, row0, rows, n, rest < kLanes ? rest : kLanes});
  }
}

int64_t parts(int64_t count, int64_t most) { return (count + most - 1) / most; }

/// Rows [m0, m1) against panels [p0, p1), depth [k0, k1).
void run_panels(const GemmBlock& g, int64_t m0, int64_t m1, int64_t p0, int64_t p1, int64_t k0,
                int64_t k1) {
  const int64_t rows = m1 - m0, tiles = parts(rows, kRows);
  for (int64_t p = p0; p < p1; ++p) {
    const int64_t column = p * kPanel;
    const int64_t columns = g.columns - column < kPanel ? g.columns - column : kPanel;
    const float* panel = g.b + p * g.panel + k0 * g.b_row;
    const bool whole = g.packed || columns == kPanel;
    const float* next = g.packed && p + 1 < p1 ? panel + g.panel : nullptr;
    for (int64_t i = 0; i < tiles; ++i) {
      const int64_t first = m0 + rows * i / tiles, last = m0 + rows * (i + 1) / tiles;
      const int64_t share = (k1 - k0) / 4 * 16;  // floats that one tile fetches
      const float* ahead = next && i * share < (k1 - k0) * kPanel ? next + i * share : nullptr;
      tile_of(last - first,
              whole)({g.a + first * g.a_row + k0, g.a_row, panel, g.b_row, k1 - k0,
                      g.c + first * g.c_row + column, g.c_row, columns, k0 > 0, ahead});
      if (k1 == g.depth && g.step_count > 0) finish(g, first, last - first, column, columns);
    }
  }
}

/// A whole panel of a matrix stored by columns, depth [k0, k1).
void pack_turned(const float* from, int64_t column, int64_t k0, int64_t k1, float* to) {
  int64_t k = k0;
#if DAIS_ISA_LEVEL >= 1
  for (; k + 8 <= k1; k += 8)
    for (int64_t n = 0; n < kPanel; n += 8)
      turn_8x8(from + n * column + k, column, to + k * kPanel + n, kPanel);
#endif
  for (int64_t n = 0; n < kPanel; ++n)
    for (int64_t rest = k; rest < k1; ++rest) to[rest * kPanel + n] = from[rest + n * column];
}

}  // namespace

int64_t gemm_panel_columns() { return kPanel; }

/// Columns of panels [p0, p1) for rows [m0, m1). Depth must be positive.
void gemm_block(const GemmBlock& g, int64_t m0, int64_t m1, int64_t p0, int64_t p1) {
  const int64_t rows = m1 - m0;
  if (rows <= kRows) return run_panels(g, m0, m1, p0, p1, 0, g.depth);
  const int64_t row_parts = parts(rows, kRowBlock);
  const int64_t depth_parts = g.depth > 0 ? parts(g.depth, kDepthBlock) : 1;
  for (int64_t p = p0; p < p1; p += kPanelBlock) {
    const int64_t end = p1 - p < kPanelBlock ? p1 : p + kPanelBlock;
    for (int64_t i = 0; i < row_parts; ++i)
      for (int64_t k = 0; k < depth_parts; ++k)
        run_panels(g, m0 + rows * i / row_parts, m0 + rows * (i + 1) / row_parts, p, end,
                   g.depth * k / depth_parts, g.depth * (k + 1) / depth_parts);
  }
}

/// Packs panels [p0, p1) of b, whose element (k, n) is at from[k * row + n * column].
void gemm_pack(const float* from, int64_t row, int64_t column, int64_t depth, int64_t columns,
               int64_t p0, int64_t p1, float* packed) {
  for (int64_t p = p0; p < p1; ++p) {
    float* to = packed + p * depth * kPanel;
    const int64_t width = columns - p * kPanel < kPanel ? columns - p * kPanel : kPanel;
    const float* base = from + p * kPanel * column;
    if (column == 1) {
      for (int64_t k = 0; k < depth; ++k, to += kPanel, base += row)
        for (int h = 0; h < 2; ++h)
          store(to + h * kLanes,
                load_first(base + h * kLanes, width - h * kLanes < 0 ? 0 : width - h * kLanes));
      continue;
    }
    // Blocks of the depth, so that lines read along k are used whole.
    constexpr int64_t kBlock = 64;
    for (int64_t k0 = 0; k0 < depth; k0 += kBlock) {
      const int64_t k1 = depth - k0 < kBlock ? depth : k0 + kBlock;
      if (row == 1 && width == kPanel)
        pack_turned(base, column, k0, k1, to);
      else
        for (int64_t n = 0; n < kPanel; ++n)
          for (int64_t k = k0; k < k1; ++k)
            to[k * kPanel + n] = n < width ? base[k * row + n * column] : 0;
    }
  }
}

}  // namespace dais::DAIS_ISA
