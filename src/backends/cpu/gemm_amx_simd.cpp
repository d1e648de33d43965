// f32 matrix product on the bf16 tile unit. Each number is cut into three bf16 numbers that add up
// to it exactly; six of the nine partial products are kept, those left out being below the rounding
// of f32. That costs six tile products, which still beats the FMA units two- to threefold.
//
// A block of rows of A is cut up once for a stretch of the depth and stays in the second-level
// cache. Panels of B come by in stretches of 128 of the depth: one is multiplied from the
// first-level cache while the next is cut up in between and the one after that is fetched, as
// memory is slower than all the rest. Sums of the block of rows and one panel lie in a small array
// of tiles until the depth has run. Bound by the tile unit (nine tile loads to twelve products).

#include "backends/cpu/gemm_block.h"

#if DAIS_ISA_LEVEL >= 3
#include "backends/cpu/gemm_cut.h"
#include "backends/cpu/gemm_steps.h"
#endif

namespace dais::DAIS_ISA {

#if DAIS_ISA_LEVEL >= 3
namespace {

using cpu::GemmBlock;

constexpr int64_t kStretch = cpu::kTileStretch, kStretchSteps = kStretch / kTileDepth;
static_assert(kTileRows == cpu::kTileStrip);
constexpr int64_t kSumTile = 256;  ///< sums of one tile
constexpr int64_t kLineFloats = 16;

int64_t parts_of(int64_t count, int64_t most) { return (count + most - 1) / most; }

/// Memory of one thread, 64-byte aligned.
struct Scratch {
  uint16_t* a;     // [stretch][strip of 16 rows][step][part]: tiles
  uint16_t* b[2];  // [step][half][part]: tiles
  float* sums;     // [strip][half]: tiles
};
constexpr int64_t kAScratch = cpu::kTileHeld * 3, kBScratch = kStretch * kTilePanel * 3;
constexpr int64_t kSumScratch = cpu::kTileRowBlock * kTilePanel;

Scratch scratch_at(uint16_t* memory) {
  uint16_t* b = memory + kAScratch;
  return {memory, {b, b + kBScratch}, reinterpret_cast<float*>(b + 2 * kBScratch)};
}

/// 16 rows of 128 bytes of a matrix that will be needed soon.
struct Rows {
  const float* first = nullptr;  ///< null: nothing
  int64_t row = 0;
  inline void fetch(int64_t part) const {
    if (!first) return;
    for (int64_t r = 6 * part; r < 6 * part + 6 && r < kTileRows; ++r) {
      __builtin_prefetch(first + r * row, 1, 2);
      __builtin_prefetch(first + r * row + kLineFloats, 1, 2);
    }
  }
};

/// Memory to bring near, some lines at a time.
struct Fetch {
  const float *next = nullptr, *end = nullptr;
  inline void run() {
    if (next >= end) return;
    for (int line = 0; line < 8; ++line)
      _mm_prefetch(reinterpret_cast<const char*>(next + line * kLineFloats), _MM_HINT_T1);
    next += 8 * kLineFloats;
  }
};

/// One strip of A times one stretch of a panel, and what is done meanwhile.
struct Strip {
  const uint16_t *a, *b;
  float* sums;
  int64_t steps;
  bool fresh;     // sums begin at zero
  int64_t pairs;  // of the next stretch, to cut in each half step
  Rows c;
};

/// Adds up from the smallest partial products to the largest. Tiles 0 and 1 are sums, 2 to 4 the
/// parts of A, 5 to 7 take turns for B.
template <int parts>
void run_strip(const Strip& strip, PanelCutter<parts>& cutter, Fetch& fetch) {
  settle_memory();
  if (strip.fresh) {
    _tile_zero(0);
    _tile_zero(1);
  } else {
    _tile_loadd(0, strip.sums, 64);
    _tile_loadd(1, strip.sums + kSumTile, 64);
  }
  PanelCutter<parts> next = cutter;
  const uint16_t *a = strip.a, *left = strip.b;
  for (int64_t k = 0; k < strip.steps; ++k, a += parts * kTile, left += 2 * parts * kTile) {
    const uint16_t* right = left + parts * kTile;
    fetch.run();
    strip.c.fetch(k);
    _tile_loadd(2, a, 64);
    if constexpr (parts == 3) {
      _tile_loadd(5, left + 2 * kTile, 64);
      _tile_dpbf16ps(0, 2, 5);
      _tile_loadd(6, right + 2 * kTile, 64);
      _tile_dpbf16ps(1, 2, 6);
    }
    next.run(strip.pairs);
    if constexpr (parts >= 2) {
      _tile_loadd(3, a + kTile, 64);
      _tile_loadd(7, left + kTile, 64);
      _tile_dpbf16ps(0, 2, 7);
      if constexpr (parts == 3) _tile_dpbf16ps(0, 3, 7);
      _tile_loadd(5, right + kTile, 64);
      _tile_dpbf16ps(1, 2, 5);
      if constexpr (parts == 3) _tile_dpbf16ps(1, 3, 5);
    }
    next.run(strip.pairs);
    if constexpr (parts == 3) _tile_loadd(4, a + 2 * kTile, 64);
    _tile_loadd(6, left, 64);
    if constexpr (parts == 3) _tile_dpbf16ps(0, 4, 6);
    if constexpr (parts >= 2) _tile_dpbf16ps(0, 3, 6);
    _tile_dpbf16ps(0, 2, 6);
    _tile_loadd(7, right, 64);
    if constexpr (parts == 3) _tile_dpbf16ps(1, 4, 7);
    if constexpr (parts >= 2) _tile_dpbf16ps(1, 3, 7);
    _tile_dpbf16ps(1, 2, 7);
  }
  cutter = next;
  _tile_stored(0, strip.sums, 64);
  _tile_stored(1, strip.sums + kSumTile, 64);
  settle_memory();
}

/// A part of A against panels [p0, p1).
template <int parts>
class Region {
 public:
  Region(const GemmBlock& g, const cpu::GemmPart& part, int64_t p0, int64_t p1, uint16_t* memory)
      : g_(g),
        m0_(part.m0),
        m1_(part.m1),
        k0_(part.k0),
        k1_(part.k1),
        p0_(p0),
        p1_(p1),
        strips_(parts_of(m1_ - m0_, kTileRows)),
        stretches_(parts_of(k1_ - k0_, kStretch)),
        scratch_(scratch_at(memory)) {}

  void cut_rows() {
    for (int64_t strip = 0; strip < strips_; ++strip)
      for (int64_t i = 0; i < stretches_; ++i)
        for (int64_t s = 0; s < steps(i); ++s)
          cut_tile(m0_ + strip * kTileRows, k0_ + i * kStretch + s * kTileDepth,
                   strip_at(i, strip) + s * parts * kTile);
  }

  /// False: a sum is NaN.
  bool run() {
    const int64_t count = (p1_ - p0_) * stretches_;
    PanelCutter<parts> next = cutter(0);
    for (int64_t i = 0; i < count; ++i) {
      next.finish();
      next = i + 1 < count ? cutter(i + 1) : PanelCutter<parts>();
      Fetch fetch;
      if (i + 2 < count) fetch = {raw(i + 2), raw(i + 2) + length(i + 2) * kTilePanel};
      multiply(i, next, fetch);
      if (i % stretches_ == stretches_ - 1 && !store_panel(p0_ + i / stretches_)) return false;
    }
    return true;
  }

 private:
  /// Stretch i of all panels: where it begins, and its depth.
  const float* raw(int64_t i) const {
    const int64_t k = k0_ + i % stretches_ * kStretch;
    return g_.b + (p0_ + i / stretches_) * g_.panel + k * kTilePanel;
  }
  int64_t length(int64_t i) const {
    const int64_t rest = k1_ - k0_ - i % stretches_ * kStretch;
    return rest < kStretch ? rest : kStretch;
  }
  int64_t steps(int64_t i) const { return parts_of(length(i), kTileDepth); }
  PanelCutter<parts> cutter(int64_t i) const { return {raw(i), length(i), scratch_.b[i % 2]}; }
  uint16_t* strip_at(int64_t i, int64_t strip) const {
    return scratch_.a +
           (i % stretches_ * strips_ * kStretchSteps + strip * steps(i)) * parts * kTile;
  }

  void cut_tile(int64_t row, int64_t k, uint16_t* to) const {
    StripRows rows;
    int64_t first = k, depth = k1_ - k;
    const int32_t* windows = nullptr;
    if (g_.windows) {
      const int64_t padded = cpu::window_depth(g_.tap);
      windows = g_.windows + k / padded * g_.rows + row;
      first = k % padded;
      depth = g_.tap - first;
    }
    for (int64_t r = 0; r < kTileRows; ++r) {
      const bool present = row + r < m1_ && (!windows || windows[r] >= 0);
      rows.present |= static_cast<uint32_t>(present) << r;
      rows.at[r] = !present ? g_.a : windows ? g_.a + windows[r] : g_.a + (row + r) * g_.a_row;
    }
    cut_a<parts>(rows, first, depth, to);
  }

  void multiply(int64_t i, PanelCutter<parts>& next, Fetch& fetch) {
    const int64_t half_steps = strips_ * steps(i) * 2;
    Strip strip{.a = strip_at(i, 0),
                .b = scratch_.b[i % 2],
                .sums = scratch_.sums,
                .steps = steps(i),
                .fresh = i % stretches_ == 0,
                .pairs = parts_of(next.pairs(), half_steps),
                .c = {}};
    if (strip.fresh)
      strip.c = {g_.c + m0_ * g_.c_row + (p0_ + i / stretches_) * kTilePanel, g_.c_row};
    for (int64_t s = 0; s < strips_; ++s) {
      if (strip.c.first && s > 0) strip.c.first += kTileRows * g_.c_row;
      run_strip(strip, next, fetch);
      strip.a += strip.steps * parts * kTile;
      strip.sums += 2 * kSumTile;
    }
  }

  /// Sums of a panel go to C; with the end of the depth what follows is done to them.
  bool store_panel(int64_t panel) const {
    __mmask16 broken = 0;
    for (int64_t strip = 0; strip < strips_; ++strip)
      for (int64_t half = 0; half < 2; ++half) {
        const int64_t row = m0_ + strip * kTileRows, column = panel * kTilePanel + half * kLanes;
        const int64_t rows = m1_ - row, count = g_.columns - column;
        if (count <= 0) break;
        broken |= store_tile({scratch_.sums + (2 * strip + half) * kSumTile, kLanes, row,
                              rows < kTileRows ? rows : kTileRows, column,
                              count < kLanes ? count : kLanes});
      }
    return broken == 0;
  }

  __mmask16 store_tile(const StepArea& sums) const {
    float* c = g_.c + sums.row * g_.c_row + sums.column;
    __mmask16 broken = 0;
    if (k0_ > 0)
      sums.each([&](Vf v, int64_t r) { return add(v, load_first(c + r * g_.c_row, sums.count)); });
    for (int64_t r = 0; r < sums.rows; ++r) {
      const Vf v = load(sums.values + r * kLanes);
      broken |= _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    }
    if (k1_ == g_.depth) run_steps(g_, sums);
    if (sums.count == kLanes)
      for (int64_t r = 0; r < sums.rows; ++r)
        store(c + r * g_.c_row, load(sums.values + r * kLanes));
    else
      for (int64_t r = 0; r < sums.rows; ++r)
        store_first(c + r * g_.c_row, load(sums.values + r * kLanes), sums.count);
    return broken;
  }

  const GemmBlock& g_;
  int64_t m0_, m1_, k0_, k1_, p0_, p1_, strips_, stretches_;
  Scratch scratch_;
};

}  // namespace

/// Bytes of scratch memory of one thread, 64-byte aligned.
int64_t gemm_tiles_scratch() { return (kAScratch + 2 * kBScratch) * 2 + kSumScratch * 4; }

/// Around the others, on each thread.
void gemm_tiles_begin() { configure_whole_tiles(); }
void gemm_tiles_end() { _tile_release(); }

/// Cuts a part of A up, for gemm_tiles_run() with the same scratch memory.
void gemm_tiles_cut(const GemmBlock& g, const cpu::GemmPart& part, uint16_t* scratch) {
  Region<3>(g, part, 0, 0, scratch).cut_rows();
}

/// Adds a part's products with panels [p0, p1) of a packed b to c, from depth 0 on; the last part
/// of the depth does what follows. False, with c in any state: the operands hold infinities or NaN,
/// which cannot be cut.
bool gemm_tiles_run(const GemmBlock& g, const cpu::GemmPart& part, int64_t p0, int64_t p1,
                    uint16_t* scratch) {
  return Region<3>(g, part, p0, p1, scratch).run();
}
#endif

}  // namespace dais::DAIS_ISA
