#include "backends/cpu/byte_gemm.h"

#include <algorithm>
#include <atomic>

#include "backends/cpu/gemm_tiles.h"
#include "base/threads.h"

namespace dais {

#define DAIS_BYTE_GEMM_LEVEL(level)                                                              \
  namespace level {                                                                              \
  void byte_block(const cpu::ByteGemm&, int64_t, int64_t, int64_t, int64_t, uint8_t*);           \
  void byte_pack_panels(const uint8_t*, int64_t, int64_t, int64_t, int64_t, bool, int64_t,       \
                        int64_t, int64_t, int8_t*, int32_t*);                                    \
  void depthwise_positions(const cpu::ByteDepthwise&, const uint8_t* const*, int64_t, uint8_t*); \
  }
DAIS_BYTE_GEMM_LEVEL(plain)
DAIS_BYTE_GEMM_LEVEL(avx2)
DAIS_BYTE_GEMM_LEVEL(avx512)
DAIS_BYTE_GEMM_LEVEL(amx)
#undef DAIS_BYTE_GEMM_LEVEL

namespace cpu {
namespace {

struct Loops {
  void (*block)(const ByteGemm&, int64_t, int64_t, int64_t, int64_t, uint8_t*);
  void (*pack)(const uint8_t*, int64_t, int64_t, int64_t, int64_t, bool, int64_t, int64_t, int64_t,
               int8_t*, int32_t*);
  void (*depthwise)(const ByteDepthwise&, const uint8_t* const*, int64_t, uint8_t*);
};

const Loops& loops(Isa isa) {
  static constexpr Loops levels[] = {
      {plain::byte_block, plain::byte_pack_panels, plain::depthwise_positions},
      {avx2::byte_block, avx2::byte_pack_panels, avx2::depthwise_positions},
      {avx512::byte_block, avx512::byte_pack_panels, avx512::depthwise_positions},
      {amx::byte_block, amx::byte_pack_panels, amx::depthwise_positions}};
  return levels[static_cast<int>(isa)];
}

/// Threads take pieces of [0, count) as they get ready, as cores may be of unequal speed: at least
/// `grain` items for a thread, and `least` for a piece when there are more pieces than threads.
template <typename Run>
void share_out(int64_t count, int64_t grain, int64_t least, Run run) {
  const int64_t threads = std::clamp<int64_t>(count / grain, 1, team_size());
  const int64_t pieces = threads == 1 ? 1 : std::clamp(count / least, threads, 4 * threads);
  std::atomic<int64_t> next{0};
  parallel_for(threads, 1, [&](int64_t first, int64_t last) {
    for (int64_t worker = first; worker < last; ++worker)
      for (int64_t i = next.fetch_add(1); i < pieces; i = next.fetch_add(1))
        run(count * i / pieces, count * (i + 1) / pieces);
  });
}

}  // namespace

void byte_pack(Isa isa, const void* from, int64_t row, int64_t column, int64_t depth,
               int64_t columns, bool flip, int8_t* packed, int32_t* sums) {
  const int64_t each = std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(depth, 1) / 16);
  parallel_for(byte_panels(columns), each, [&](int64_t first, int64_t last) {
    loops(isa).pack(static_cast<const uint8_t*>(from), row, column, depth, columns, flip,
                    byte_depth(depth).padded, first, last, packed, sums);
  });
}

void byte_gemm(Isa isa, const ByteGemm& gemm) {
  static_assert(kByteHeld <= kTileMemory * 4);
  constexpr int64_t kRows = 32;       ///< rows that share their loads of B
  constexpr double kGrain = 1 << 20;  ///< products that some microseconds take
  const auto block = [&](int64_t row, int64_t row_end, int64_t panel, int64_t panel_end) {
    auto* held = isa == Isa::amx ? reinterpret_cast<uint8_t*>(gemm_tiles_memory()) : nullptr;
    loops(isa).block(gemm, row, row_end, panel, panel_end, held);
  };
  const int64_t panels = byte_panels(gemm.columns), bands = (gemm.rows + kRows - 1) / kRows;
  const double band_work =
      static_cast<double>(kRows) * static_cast<double>(gemm.columns) * (gemm.depth + 64.0);
  const double pair_work = static_cast<double>(gemm.rows) * 32.0 * (gemm.depth + 64.0) +
                           8.0 * 32.0 * static_cast<double>(gemm.depth);
  const auto grain = [&](double each) {
    return std::max<int64_t>(1, static_cast<int64_t>(kGrain / std::max(each, 1.0)));
  };
  if (bands >= 4 * team_size()) {
    share_out(bands, grain(band_work), 4, [&](int64_t first, int64_t last) {
      block(first * kRows, std::min(last * kRows, gemm.rows), 0, panels);
    });
    return;
  }
  share_out((panels + 1) / 2, grain(pair_work), 16, [&](int64_t first, int64_t last) {
    block(0, gemm.rows, 2 * first, std::min(2 * last, panels));
  });
}

void depthwise_pack(const int8_t* from, int64_t channels, int64_t taps, int8_t* packed) {
  // Blocks of 64 channels; per block groups of 4 taps; per group four vectors of 16 channels x 4
  // taps in the order in which interleaving the bytes of four rows gives them.
  const int64_t groups = (taps + 3) / 4;
  for (int64_t c = 0; c < depthwise_channels(channels); ++c)
    for (int64_t t = 0; t < groups * 4; ++t) {
      const int64_t block = c / kDepthwiseBlock, place = depthwise_place(c) % kDepthwiseBlock;
      packed[(block * groups + t / 4) * 256 + place * 4 + t % 4] =
          c < channels && t < taps ? from[c * taps + t] : int8_t{0};
    }
}

void depthwise_run(Isa isa, const ByteDepthwise& conv, const uint8_t* const* rows, int64_t count,
                   void* y) {
  loops(isa).depthwise(conv, rows, count, static_cast<uint8_t*>(y));
}

}  // namespace cpu
}  // namespace dais
