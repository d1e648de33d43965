// The product of product.cu, behind which this text stands, by the matrix instruction: for 16-bit
// types, with sums in float. A block makes 128 x 128 results, eight warps 64 x 32 each, from slices
// of depth 32 in shared memory. B lies turned there, so that of both operands two neighbours along
// the depth are one word, as the instruction takes them. Bound by arithmetic for large sizes.
//
// Compiled with: product.cu before it, for A_TYPE f16 or bf16.

#include "mma.cuh"

constexpr int kCoreTile = 128;
constexpr int kCoreSlice = 32;
constexpr int kCoreRow = kCoreSlice + 8;  // the padding spreads rows over the banks

__device__ __forceinline__ uint32 pair_at(const A_TYPE* from) {
  return *reinterpret_cast<const uint32*>(from);
}

/// Eight neighbours along the depth of A at a time, where rows and addresses allow.
__device__ __forceinline__ void fetch_left(const Problem& p, const A_TYPE* a, int32 row, int32 k,
                                           A_TYPE (*left)[kCoreRow]) {
  if (p.packs & 1) {
    for (int at = threadIdx.x; at < kCoreTile * kCoreSlice / 8; at += kThreads) {
      const int r = at / (kCoreSlice / 8), d = at % (kCoreSlice / 8) * 8;
      Pack<A_TYPE, 8> pack = {};
      if (row + r < p.rows && k + d < p.depth)
        pack = load_pack<8>(a + static_cast<int64>(row + r) * p.a_row + k + d);
      store_pack(&left[r][d], pack);
    }
    return;
  }
  for (int at = threadIdx.x; at < kCoreTile * kCoreSlice; at += kThreads) {
    const int r = p.rows_first_a ? at % kCoreTile : at / kCoreSlice;
    const int d = p.rows_first_a ? at / kCoreTile : at % kCoreSlice;
    left[r][d] = load_a(p, a, row + r, k + d);
  }
}

/// B by columns: eight of a row are loaded at once and go to eight columns.
__device__ __forceinline__ void fetch_right(const Problem& p, const B_TYPE* b, int32 column,
                                            int32 k, B_TYPE (*right)[kCoreRow]) {
  if (p.packs & 2) {
    for (int at = threadIdx.x; at < kCoreTile * kCoreSlice / 8; at += kThreads) {
      const int c = at % (kCoreTile / 8) * 8, d = at / (kCoreTile / 8);
      Pack<B_TYPE, 8> pack = {};
      if (column + c < p.columns && k + d < p.depth)
        pack = load_pack<8>(b + static_cast<int64>(k + d) * p.b_row + column + c);
#pragma unroll
      for (int i = 0; i < 8; ++i) right[c + i][d] = pack.at[i];
    }
    return;
  }
  for (int at = threadIdx.x; at < kCoreTile * kCoreSlice; at += kThreads) {
    const int c = p.columns_first_b ? at % kCoreTile : at / kCoreSlice;
    const int d = p.columns_first_b ? at / kCoreTile : at % kCoreSlice;
    right[c][d] = load_b(p, b, k + d, column + c);
  }
}

extern "C" __global__ void __launch_bounds__(256)
    product_cores(Problem p, Epilogue epilogue, const A_TYPE* a, const B_TYPE* b, Y_TYPE* y) {
  __shared__ __align__(16) A_TYPE left[kCoreTile][kCoreRow];
  __shared__ __align__(16) B_TYPE right[kCoreTile][kCoreRow];
  const uint32 tiles_across = (p.columns + kCoreTile - 1) / kCoreTile;
  const uint32 tiles = (p.rows + kCoreTile - 1) / kCoreTile * tiles_across;
  const int64 z = blockIdx.x / tiles;
  const uint32 tile = blockIdx.x % tiles;
  const int32 row = tile / tiles_across * kCoreTile, column = tile % tiles_across * kCoreTile;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int down = warp / 4 * 64, across = warp % 4 * 32;
  const int g = lane / 4, t = lane % 4 * 2;
  const Base base = base_of(p, a, b, z);

  float sums[4][4][4] = {};
  for (int32 k = 0; k < p.depth; k += kCoreSlice) {
    fetch_left(p, base.a, row, k, left);
    fetch_right(p, base.b, column, k, right);
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kCoreSlice; d += 16) {
      uint32 x[4][4], w[4][2];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int r = down + i * 16 + g, c = across + i * 8 + g;
        x[i][0] = pair_at(&left[r][d + t]);
        x[i][1] = pair_at(&left[r + 8][d + t]);
        x[i][2] = pair_at(&left[r][d + t + 8]);
        x[i][3] = pair_at(&left[r + 8][d + t + 8]);
        w[i][0] = pair_at(&right[c][d + t]);
        w[i][1] = pair_at(&right[c][d + t + 8]);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) mma_16x8x16<A_TYPE>(sums[i][j], x[i], w[j]);
    }
    __syncthreads();
  }

  const Rows place = rows_of(p, z);
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int part = 0; part < 4; ++part)
        finish(p, epilogue, place, z, row + down + i * 16 + g + part / 2 * 8,
               column + across + j * 8 + t + part % 2, sums[i][j][part], y);
}
