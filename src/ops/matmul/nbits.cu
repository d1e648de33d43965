// A [rows, depth] times the transpose of a matrix [columns, depth] held in blocks of BITS-bit codes:
// a warp for each column and each eight rows of A. Lanes take eight neighbouring codes (BITS bytes)
// at a time, whose block, scale and zero point they share, widen them in registers and keep one sum
// for each row. Weights are read once for eight rows: bound by memory for few rows, by the reads of
// A from the cache for many.
//
// ZERO says where zero points come from: 0 the middle of the range, 1 packed like the codes, 2 of
// A's type, one for each block.
//
// Compiled with: -DELEMENT=float -DBITS=4 -DZERO=0
// Compiled with: -DELEMENT=f16 -DBITS=4 -DZERO=1
// Compiled with: -DELEMENT=float -DBITS=8 -DZERO=1
// Compiled with: -DELEMENT=bf16 -DBITS=2 -DZERO=2
#include "reduce.cuh"

constexpr int kRows = 8, kCodes = 8, kWarps = 8;
constexpr int kPerByte = 8 / BITS;
constexpr uint32 kMask = (1u << BITS) - 1;

/// Sizes; `block` codes of a column share a scale, and `zero_bytes` hold a column's zero points.
struct Packed {
  Size rows, depth, columns, block, blocks, block_bytes, zero_bytes;
};

__device__ __forceinline__ float zero_of(const Packed& p, const void* zeros, Size column,
                                         Size block) {
#if ZERO == 0
  return static_cast<float>(1 << (BITS - 1));
#elif ZERO == 1
  const uint8 byte = static_cast<const uint8*>(zeros)[column * p.zero_bytes + block / kPerByte];
  return static_cast<float>((byte >> (block % kPerByte * BITS)) & kMask);
#else
  return to_float(static_cast<const ELEMENT*>(zeros)[column * p.blocks + block]);
#endif
}

/// 256 threads; grid (columns / 8, rows / 8). `bias` may be null.
// Without a number of blocks, ptxas spills for sm_100 to fit more of them.
extern "C" __global__ void __launch_bounds__(32 * kWarps, 1)
    nbits_product(const ELEMENT* __restrict__ a, const uint8* __restrict__ codes,
                  const ELEMENT* __restrict__ scales, const void* __restrict__ zeros,
                  const ELEMENT* __restrict__ bias, ELEMENT* __restrict__ y, Packed p) {
  const Size lane = threadIdx.x % 32, column = blockIdx.x * kWarps + threadIdx.x / 32;
  const Size row = blockIdx.y * kRows;
  if (column >= p.columns) return;
  codes += int64(column) * p.blocks * p.block_bytes;
  a += int64(row) * p.depth;
  float sums[kRows] = {};
  for (Size k = lane * kCodes; k < p.depth; k += 32 * kCodes) {
    const Size block = k / p.block, within = k % p.block;
    const float scale = to_float(scales[column * p.blocks + block]);
    const float zero = zero_of(p, zeros, column, block);
    const uint8* from = codes + block * p.block_bytes + within / kPerByte;
    float weights[kCodes];
#pragma unroll
    for (int i = 0; i < kCodes; ++i) {
      const uint32 code = (from[i / kPerByte] >> (i % kPerByte * BITS)) & kMask;
      weights[i] = (static_cast<float>(code) - zero) * scale;
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (row + r >= p.rows) break;
#pragma unroll
      for (int i = 0; i < kCodes; ++i)
        if (k + i < p.depth) sums[r] += to_float(a[int64(r) * p.depth + k + i]) * weights[i];
    }
  }
  const float more = bias ? to_float(bias[column]) : 0.0f;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float sum = warp_join(sums[r], Plus());
    if (lane == 0 && row + r < p.rows)
      y[int64(row + r) * p.columns + column] = from_float<ELEMENT>(sum + more);
  }
}
