#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/byte_block.h"
#include "base/isa.h"

/// The engine's own product of 8-bit matrices with exact i32 sums, and what follows it: zero
/// points, scales, a residual, rounding. Rows of products and convolutions share it.
namespace dais::cpu {

/// How the depth is walked: steps of `step` numbers (a multiple of 4, at most 64); B is packed to
/// `padded` numbers, zeros behind `depth`.
struct ByteDepth {
  int64_t step = 64, padded = 64;
};

constexpr ByteDepth byte_depth(int64_t depth) {
  const int64_t least = std::max<int64_t>((depth + 63) / 64, 1);
  if (depth % 4 == 0 && depth > 0)
    for (int64_t steps = least; steps <= 2 * least; ++steps)
      if (depth % (4 * steps) == 0) return {depth / steps, depth};
  return {64, least * 64};
}

constexpr int64_t byte_panels(int64_t columns) { return (columns + kBytePanel - 1) / kBytePanel; }
/// Columns with those of the last panel that do not exist; per-column arrays have this length.
constexpr int64_t byte_columns(int64_t columns) { return byte_panels(columns) * kBytePanel; }
constexpr int64_t byte_packed_bytes(int64_t depth, int64_t columns) {
  return byte_columns(columns) * byte_depth(depth).padded;
}

/// Bytes of memory for ByteGemm::partial; 0: none is needed.
constexpr int64_t byte_partial_bytes(int64_t rows, int64_t columns, int64_t depth) {
  if (rows <= 64 || depth < 3 * kByteDepthBlock) return 0;
  return rows * byte_columns(columns) * 4;
}
inline void byte_set_depth(ByteGemm& gemm, int64_t depth) {
  gemm.depth = depth;
  gemm.step = byte_depth(depth).step;
  gemm.padded = byte_depth(depth).padded;
}

/// Packs a matrix whose element (k, n) is at from[k * row + n * column]; one of the strides is 1.
/// `flip` turns u8 into s8 by subtracting 128. `sums` gets the sums of the columns. On the pool.
void byte_pack(Isa isa, const void* from, int64_t row, int64_t column, int64_t depth,
               int64_t columns, bool flip, int8_t* packed, int32_t* sums);

/// Runs the product on the pool. The split over threads depends on sizes and team only; sums are
/// exact, so every split gives the same bits.
void byte_gemm(Isa isa, const ByteGemm& gemm);

constexpr int64_t depthwise_channels(int64_t channels) {
  return (channels + kDepthwiseBlock - 1) / kDepthwiseBlock * kDepthwiseBlock;
}
constexpr int64_t depthwise_packed_bytes(int64_t channels, int64_t taps) {
  return depthwise_channels(channels) * ((taps + 3) / 4 * 4);
}
/// Where the kernel looks for what belongs to a channel.
constexpr int64_t depthwise_place(int64_t c) {
  return c / 64 * 64 + c % 16 / 4 * 16 + c % 64 / 16 * 4 + c % 4;
}
/// Weights [channels][taps] of s8 to the kernel's order.
void depthwise_pack(const int8_t* from, int64_t channels, int64_t taps, int8_t* packed);
/// `count` positions; rows[i * taps + t] is the row that tap t of position i sees. On the caller's
/// thread.
void depthwise_run(Isa isa, const ByteDepthwise& conv, const uint8_t* const* rows, int64_t count,
                   void* y);

}  // namespace dais::cpu
