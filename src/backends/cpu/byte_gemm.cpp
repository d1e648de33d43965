#include "backends/cpu/byte_gemm.h"

#include "base/threads.h"

namespace dais {

#define DAIS_BYTE_GEMM_LEVEL(level)                                                              \
  namespace level {                                                                              \
  void byte_block(const cpu::ByteGemm&, int64_t, int64_t, int64_t, int64_t);                     \
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
  void (*block)(const ByteGemm&, int64_t, int64_t, int64_t, int64_t);
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
  constexpr int64_t kRows = 32;       ///< rows that share their loads of B
  constexpr double kGrain = 1 << 20;  ///< products that some microseconds take
  const auto block = loops(isa).block;
  const int64_t panels = byte_panels(gemm.columns), bands = (gemm.rows + kRows - 1) / kRows;
  const double band_work =
      static_cast<double>(kRows) * static_cast<double>(gemm.columns) * (gemm.depth + 64.0);
  const double pair_work = static_cast<double>(gemm.rows) * 32.0 * (gemm.depth + 64.0) +
                           8.0 * 32.0 * static_cast<double>(gemm.depth);
  const auto grain = [&](double each) {
    return std::max<int64_t>(1, static_cast<int64_t>(kGrain / std::max(each, 1.0)));
  };
  if (bands >= 4 * team_size()) {
    parallel_for(bands, grain(band_work), [&](int64_t first, int64_t last) {
      block(gemm, first * kRows, std::min(last * kRows, gemm.rows), 0, panels);
    });
    return;
  }
  parallel_for((panels + 1) / 2, grain(pair_work), [&](int64_t first, int64_t last) {
    block(gemm, 0, gemm.rows, 2 * first, std::min(2 * last, panels));
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
