// The product of product.cu, behind which this text stands, by the matrix instruction: for 16-bit
// types, and for float whose elements are rounded to TF32 (10 bits of mantissa) on the way in, with
// sums in float. A block makes 128 x 128 results, eight warps 64 x 32 each, from slices of depth 32
// in shared memory. B lies turned there, so that of both operands what neighbours along the depth is
// a word, as the instruction takes it: two elements of 16 bits or one of 32. Bound by arithmetic for
// large sizes.
//
// Compiled with: product.cu before it, for A_TYPE f16, bf16 or float.

#include "mma.cuh"

template <typename T>
struct CoreOf {
  using Type = T;
  static __device__ __forceinline__ T from(T x) { return x; }
};
template <>
struct CoreOf<float> {
  using Type = uint32;
  static __device__ __forceinline__ uint32 from(float x) { return to_tf32(x); }
};
using Core = CoreOf<A_TYPE>::Type;

constexpr int kCoreTile = 128;
constexpr int kCoreSlice = 32;
constexpr int kCorePack = 16 / sizeof(Core);
constexpr int kCoreRow = kCoreSlice + kCorePack;  // the padding spreads rows over the banks
constexpr int kCoreWords = kCoreSlice * sizeof(Core) / 4;

__device__ __forceinline__ uint32 word_at(const Core* row, int word) {
  return reinterpret_cast<const uint32*>(row)[word];
}

/// Neighbours along the depth of A at a time, where rows and addresses allow.
__device__ __forceinline__ void fetch_left(const Problem& p, const A_TYPE* a, int32 row, int32 k,
                                           Core (*left)[kCoreRow]) {
  if (p.packs & 1) {
    for (int at = threadIdx.x; at < kCoreTile * kCoreSlice / kCorePack; at += kThreads) {
      const int r = at / (kCoreSlice / kCorePack), d = at % (kCoreSlice / kCorePack) * kCorePack;
      Pack<A_TYPE, kCorePack> pack = {};
      if (row + r < p.rows && k + d < p.depth)
        pack = load_pack<kCorePack>(a + static_cast<int64>(row + r) * p.a_row + k + d);
      Pack<Core, kCorePack> core;
#pragma unroll
      for (int i = 0; i < kCorePack; ++i) core.at[i] = CoreOf<A_TYPE>::from(pack.at[i]);
      store_pack(&left[r][d], core);
    }
    return;
  }
  for (int at = threadIdx.x; at < kCoreTile * kCoreSlice; at += kThreads) {
    const int r = p.rows_first_a ? at % kCoreTile : at / kCoreSlice;
    const int d = p.rows_first_a ? at / kCoreTile : at % kCoreSlice;
    left[r][d] = CoreOf<A_TYPE>::from(load_a(p, a, row + r, k + d));
  }
}

/// B by columns: neighbours of a row are loaded at once and go to as many columns.
__device__ __forceinline__ void fetch_right(const Problem& p, const B_TYPE* b, int32 column,
                                            int32 k, Core (*right)[kCoreRow]) {
  if (p.packs & 2) {
    for (int at = threadIdx.x; at < kCoreTile * kCoreSlice / kCorePack; at += kThreads) {
      const int c = at % (kCoreTile / kCorePack) * kCorePack, d = at / (kCoreTile / kCorePack);
      Pack<B_TYPE, kCorePack> pack = {};
      if (column + c < p.columns && k + d < p.depth)
        pack = load_pack<kCorePack>(b + static_cast<int64>(k + d) * p.b_row + column + c);
#pragma unroll
      for (int i = 0; i < kCorePack; ++i) right[c + i][d] = CoreOf<B_TYPE>::from(pack.at[i]);
    }
    return;
  }
  for (int at = threadIdx.x; at < kCoreTile * kCoreSlice; at += kThreads) {
    const int c = p.columns_first_b ? at % kCoreTile : at / kCoreSlice;
    const int d = p.columns_first_b ? at / kCoreTile : at % kCoreSlice;
    right[c][d] = CoreOf<B_TYPE>::from(load_b(p, b, k + d, column + c));
  }
}

extern "C" __global__ void __launch_bounds__(256)
    product_cores(Problem p, Epilogue epilogue, const A_TYPE* a, const B_TYPE* b, Y_TYPE* y) {
  __shared__ __align__(16) Core left[kCoreTile][kCoreRow];
  __shared__ __align__(16) Core right[kCoreTile][kCoreRow];
  const uint32 tiles_across = (p.columns + kCoreTile - 1) / kCoreTile;
  const uint32 tiles = (p.rows + kCoreTile - 1) / kCoreTile * tiles_across;
  const int64 z = blockIdx.x / tiles;
  const uint32 tile = blockIdx.x % tiles;
  const int32 row = tile / tiles_across * kCoreTile, column = tile % tiles_across * kCoreTile;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int down = warp / 4 * 64, across = warp % 4 * 32;
  const int g = lane / 4, t = lane % 4;
  const Base base = base_of(p, a, b, z);

  float sums[4][4][4] = {};
  for (int32 k = 0; k < p.depth; k += kCoreSlice) {
    fetch_left(p, base.a, row, k, left);
    fetch_right(p, base.b, column, k, right);
    __syncthreads();
#pragma unroll
    for (int word = 0; word < kCoreWords; word += 8) {
      uint32 x[4][4], w[4][2];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int r = down + i * 16 + g, c = across + i * 8 + g;
        x[i][0] = word_at(left[r], word + t);
        x[i][1] = word_at(left[r + 8], word + t);
        x[i][2] = word_at(left[r], word + t + 4);
        x[i][3] = word_at(left[r + 8], word + t + 4);
        w[i][0] = word_at(right[c], word + t);
        w[i][1] = word_at(right[c], word + t + 4);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) mma_words<A_TYPE>(sums[i][j], x[i], w[j]);
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
               column + across + j * 8 + 2 * t + part % 2, sums[i][j][part], y);
}
