#include "backends/cpu/gemm.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "backends/cpu/gemm_tiles.h"
#include "base/error.h"
#include "base/threads.h"

namespace dais {

#define DAIS_GEMM_LEVEL(level)                                                                \
  namespace level {                                                                           \
  int64_t gemm_panel_columns();                                                               \
  void gemm_block(const cpu::GemmBlock&, int64_t, int64_t, int64_t, int64_t);                 \
  void gemm_pack(const float*, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, float*); \
  }
DAIS_GEMM_LEVEL(plain)
DAIS_GEMM_LEVEL(avx2)
DAIS_GEMM_LEVEL(avx512)
#undef DAIS_GEMM_LEVEL
namespace cpu {
namespace {

struct Loops {
  int64_t (*panel_columns)();
  void (*block)(const GemmBlock&, int64_t, int64_t, int64_t, int64_t);
  void (*pack)(const float*, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, float*);
};

const Loops& loops(Isa isa) {
  static constexpr Loops levels[] = {
      {plain::gemm_panel_columns, plain::gemm_block, plain::gemm_pack},
      {avx2::gemm_panel_columns, avx2::gemm_block, avx2::gemm_pack},
      {avx512::gemm_panel_columns, avx512::gemm_block, avx512::gemm_pack}};
  return levels[std::min(static_cast<int>(isa), 2)];
}

int64_t panels_of(Isa isa, int64_t columns) {
  const int64_t width = loops(isa).panel_columns();
  return (columns + width - 1) / width;
}

/// Threads that pay: each should have some 5 us of arithmetic or of memory traffic.
int64_t useful_threads(const GemmBlock& block) {
  const double flops = 2.0 * static_cast<double>(block.rows) * static_cast<double>(block.columns) *
                       static_cast<double>(block.depth);
  const double bytes = 4.0 * static_cast<double>(block.columns) * static_cast<double>(block.depth);
  return static_cast<int64_t>(std::max({flops / 5e5, bytes / 1e5, 1.0}));
}

/// From how many rows on the tile unit pays: cutting up B costs as much as multiplying with
/// some 40.
constexpr int64_t kTileRows = 40, kTileDepth = 32;

bool uses_tiles(Isa isa, const GemmBlock& block) {
  return isa == Isa::amx && block.packed && block.rows >= kTileRows && block.depth >= kTileDepth;
}

/// Rows [m0, m1) of windows, one after the other.
void gather(const GemmBlock& block, int64_t m0, int64_t m1, float* to) {
  const int64_t padded = window_depth(block.tap);
  for (int64_t m = m0; m < m1; ++m)
    for (int64_t t = 0; t < block.depth / padded; ++t, to += padded) {
      const int32_t at = block.windows[t * block.rows + m];
      std::fill_n(to, padded, 0.0f);
      if (at >= 0) std::copy_n(block.a + at, block.tap, to);
    }
}

}  // namespace

PageMemory::PageMemory(size_t bytes) : bytes_(bytes) {
  constexpr size_t kLarge = size_t{2} << 20;
  const size_t alignment = bytes >= kLarge ? kLarge : 64;
  const size_t whole = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  data_ = std::aligned_alloc(alignment, whole);
  if (!data_)
    throw Error(Code::exhausted, "no memory for " + std::to_string(bytes) + " bytes of weights");
  if (alignment == kLarge) madvise(data_, whole, MADV_HUGEPAGE);
}

PageMemory::~PageMemory() { std::free(data_); }

int64_t gemm_panel_columns(Isa isa) { return loops(isa).panel_columns(); }

int64_t gemm_packed_floats(Isa isa, int64_t depth, int64_t columns) {
  return panels_of(isa, columns) * loops(isa).panel_columns() * depth;
}

void gemm_pack(Isa isa, const float* from, int64_t row, int64_t column, int64_t depth,
               int64_t columns, float* packed) {
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(depth, 1));
  parallel_for(panels_of(isa, columns), grain, [&](int64_t first, int64_t last) {
    loops(isa).pack(from, row, column, depth, columns, first, last, packed);
  });
}

void gemm_pack_serial(Isa isa, const float* from, int64_t row, int64_t column, int64_t depth,
                      int64_t columns, float* packed) {
  loops(isa).pack(from, row, column, depth, columns, 0, panels_of(isa, columns), packed);
}

void gemm_set_packed(Isa isa, GemmBlock& block, const float* packed) {
  const int64_t width = loops(isa).panel_columns();
  block.b = packed;
  block.b_row = width;
  block.panel = block.depth * width;
  block.packed = true;
}

void gemm_set_plain(Isa isa, GemmBlock& block, const float* b, int64_t row) {
  block.b = b;
  block.b_row = row;
  block.panel = loops(isa).panel_columns();
  block.packed = false;
}

void gemm_serial(Isa isa, const GemmBlock& block) {
  if (block.rows <= 0 || block.columns <= 0) return;
  if (uses_tiles(isa, block) && gemm_on_tiles(block, 1)) return;
  loops(isa).block(block, 0, block.rows, 0, panels_of(isa, block.columns));
}

void gemm(Isa isa, const GemmBlock& block) {
  if (block.rows <= 0 || block.columns <= 0) return;
  const int64_t panels = panels_of(isa, block.columns);
  const int64_t threads = std::min<int64_t>(team_size(), useful_threads(block));
  if (uses_tiles(isa, block) && gemm_on_tiles(block, threads)) return;
  // Rather columns than rows: each thread then streams its own part of B.
  const int64_t across = std::min(threads, panels);
  const int64_t down = std::clamp<int64_t>(threads / across, 1, (block.rows + 11) / 12);
  parallel_for(across * down, 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      const int64_t i = part / across, j = part % across;
      loops(isa).block(block, block.rows * i / down, block.rows * (i + 1) / down,
                       panels * j / across, panels * (j + 1) / across);
    }
  });
}

void gemm_windows(const GemmBlock& block) {
  if (block.rows <= 0 || block.columns <= 0) return;
  if (gemm_on_tiles(block, std::min<int64_t>(team_size(), useful_threads(block)))) return;
  // Values that cannot be cut up, in models gone wrong: slow, but right.
  float* rows = gemm_tiles_memory();
  GemmStep steps[kMaxGemmSteps];
  const int64_t count = std::max<int64_t>(kTileMemory / block.depth, 1);
  for (int64_t m = 0; m < block.rows; m += count) {
    GemmBlock some = block;
    some.rows = std::min(count, block.rows - m);
    gather(block, m, m + some.rows, rows);
    some.windows = nullptr;
    some.a = rows;
    some.a_row = block.depth;
    some.c += m * block.c_row;
    for (int64_t s = 0; s < block.step_count; ++s) {
      steps[s] = block.steps[s];
      if (steps[s].operand) steps[s].operand += m * steps[s].row;
    }
    some.steps = steps;
    gemm(Isa::avx512, some);
  }
}

}  // namespace cpu
}  // namespace dais
