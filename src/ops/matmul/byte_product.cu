// Products of bytes with zero points, exact in 32 bits: y[z] = finish(sum over k of (A - a0)(B - b0)),
// and of floats of 8 bits (FLOATS), with float sums and no zero points. The sums run over the bytes as they are; with zero points the sums of A's rows and B's columns are
// kept beside them, from the same instructions, and taken into account at the end. Bytes beyond the
// edges count as zero on both sides and so in no sum; the padding of a convolution counts as its
// input's zero point.
//
// byte_product: blocks of 64 x 64 results in 256 threads, four bytes of the depth by one instruction.
// byte_cores (CORES): blocks of 128 x 128 results in eight warps of 64 x 32 by the matrix
// instruction. Both bound by arithmetic for large sizes, by memory for few rows.
//
// STORE is explained in bytes.cuh.
//
// Compiled with: -DA_TYPE=uint8 -DB_TYPE=int8 -DY_TYPE=int32 -DMODE=0 -DSTORE=0
// Compiled with: -DA_TYPE=uint8 -DB_TYPE=uint8 -DY_TYPE=uint8 -DMODE=0 -DSTORE=1
// Compiled with: -DA_TYPE=int8 -DB_TYPE=uint8 -DY_TYPE=uint8 -DMODE=1 -DSTORE=1
// Compiled with: -DA_TYPE=int8 -DB_TYPE=int8 -DY_TYPE=float -DMODE=0 -DSTORE=2 -DCORES -DNEEDS=80
// Compiled with: -DA_TYPE=int8 -DB_TYPE=uint8 -DY_TYPE=int8 -DMODE=1 -DSTORE=1 -DCORES -DNEEDS=80
// Compiled with: -DA_TYPE=f8e4m3 -DB_TYPE=f8e4m3 -DY_TYPE=float -DMODE=0 -DSTORE=2 -DFLOATS -DCORES -DNEEDS=89
// Compiled with: -DA_TYPE=f8e4m3 -DB_TYPE=f8e5m2 -DY_TYPE=float -DMODE=0 -DSTORE=2 -DFLOATS -DCORES -DNEEDS=89
#include "bytes.cuh"
#include "mma.cuh"
#include "product.cuh"

/// Four bytes of A's row from k on; they lie side by side but in turned matrices.
__device__ __forceinline__ uint32 word_of_a(const Problem& p, const A_TYPE* a, int32 row, int32 k) {
  if (row >= p.rows || k >= p.depth) return 0;
  const int64 step = MODE == MODE_MATRICES ? p.a_column : 1;
  a += MODE == MODE_MATRICES ? row * p.a_row + k * step : int64(row) * p.depth + k;
  if (p.packs & 1) return *reinterpret_cast<const uint32*>(a);
  uint32 word = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (k + i < p.depth) word |= uint32(bits_of(a[i * step])) << (8 * i);
  return word;
}

/// Four bytes of B's column from k on; `padding`: what a window reads outside its input.
__device__ __forceinline__ uint32 word_of_b(const Problem& p, const B_TYPE* b, int32 k, int32 column,
                                            B_TYPE padding) {
  if (column >= p.columns || k >= p.depth) return 0;
  uint32 word = 0;
#if MODE == MODE_MATRICES
  b += k * p.b_row + column * p.b_column;
  if (p.packs & 2) return *reinterpret_cast<const uint32*>(b);
#endif
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (k + i >= p.depth) break;
#if MODE == MODE_MATRICES
    const B_TYPE byte = b[i * p.b_row];
#else
    const int32 channel = (k + i) / p.taps, cell = input_cell(p, (k + i) % p.taps, column);
    const B_TYPE byte = cell < 0 ? padding : b[int64(channel) * p.in_cells + cell];
#endif
    word |= uint32(bits_of(byte)) << (8 * i);
  }
  return word;
}

constexpr int kThreads = 256;

/// The first tile's row and column of a block, and the batch entry.
struct Tile {
  int64 z;
  int32 row, column;
};
__device__ __forceinline__ Tile tile_of(const Problem& p, int size) {
  const uint32 across = (p.columns + size - 1) / size, down = (p.rows + size - 1) / size;
  const uint32 tile = blockIdx.x % (across * down);
  return {blockIdx.x / (across * down), int32(tile / across) * size, int32(tile % across) * size};
}
/// The row of the whole result, over all groups of a convolution.
__device__ __forceinline__ int32 whole_row(const Problem& p, int64 z, int32 row) {
  return MODE == MODE_MATRICES ? row : int32(z % p.group) * p.rows + row;
}

constexpr int kTile = 64, kWords = 16;

// Blocks an SM that ptxas leaves registers for.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr int kBlocks = 2;  // three would leave a register too few
#else
constexpr int kBlocks = 3;
#endif

extern "C" __global__ void __launch_bounds__(256, kBlocks)
    byte_product(Problem p, Finish f, const A_TYPE* a, const B_TYPE* b, Y_TYPE* y) {
  __shared__ uint32 left[kWords][kTile + 4];
  __shared__ uint32 right[kWords][kTile + 4];
  const Tile tile = tile_of(p, kTile);
  const Base base = base_of(p, a, b, tile.z);
  const B_TYPE padding = f.b_zero ? *f.b_zero : B_TYPE{};
  const int down = threadIdx.x / 16 * 4, across = threadIdx.x % 16 * 4;
  Sum sums[4][4] = {};
  int32 of_a[4] = {}, of_b[4] = {};
  for (int32 k = 0; k < p.depth; k += 4 * kWords) {
    for (int at = threadIdx.x; at < kTile * kWords; at += kThreads) {
      // Neighbouring threads load neighbouring addresses.
      const int line = p.rows_first_a ? at % kTile : at / kWords;
      const int word = p.rows_first_a ? at / kTile : at % kWords;
      left[word][line] = word_of_a(p, base.a, tile.row + line, k + 4 * word);
      const int column = p.columns_first_b ? at % kTile : at / kWords;
      const int across_word = p.columns_first_b ? at / kTile : at % kWords;
      right[across_word][column] =
          word_of_b(p, base.b, k + 4 * across_word, tile.column + column, padding);
    }
    __syncthreads();
    for (int word = 0; word < kWords; ++word) {
      Four x[4], w[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        x[i] = four_of<A_TYPE>(left[word][down + i]);
        w[i] = four_of<B_TYPE>(right[word][across + i]);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#ifndef FLOATS
        if (f.b_zero) of_a[i] = dot<A_TYPE, uint8>(x[i], kOnes, of_a[i]);
        if (f.a_zero) of_b[i] = dot<B_TYPE, uint8>(w[i], kOnes, of_b[i]);
#endif
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] = dot<A_TYPE, B_TYPE>(x[i], w[j], sums[i][j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int32 row = tile.row + down + i, column = tile.column + across + j;
      if (row >= p.rows || column >= p.columns) continue;
      const int32 at = whole_row(p, tile.z, row);
      const Sum sum = centered(p.depth, f, sums[i][j], of_a[i], of_b[j], at, column);
      y[(tile.z * p.rows + row) * p.columns + column] = finished(f, sum, at, column);
    }
}

#ifdef CORES
constexpr int kCoreTile = 128;
constexpr int kCoreWords = 16, kCoreRow = kCoreWords + 4;  // the padding spreads rows over the banks

/// Where the instruction adds up what a step along the depth gives: exact sums at their place, those
/// of floats beside it (mma.cuh).
template <typename T>
struct Piece {
  T (&sums)[4][4][4];
  __device__ __forceinline__ explicit Piece(T (&to)[4][4][4]) : sums(to) {}
  __device__ __forceinline__ T (&of(int i, int j))[4] { return sums[i][j]; }
  __device__ __forceinline__ void add_to(T (&)[4][4][4]) const {}
};
template <>
struct Piece<float> {
  float sums[4][4][4] = {};
  __device__ __forceinline__ explicit Piece(float (&)[4][4][4]) {}
  __device__ __forceinline__ float (&of(int i, int j))[4] { return sums[i][j]; }
  __device__ __forceinline__ void add_to(float (&to)[4][4][4]) const {
#pragma unroll
    for (int i = 0; i < 64; ++i) to[i / 16][i / 4 % 4][i % 4] += sums[i / 16][i / 4 % 4][i % 4];
  }
};

extern "C" __global__ void __launch_bounds__(256)
    byte_cores(Problem p, Finish f, const A_TYPE* a, const B_TYPE* b, Y_TYPE* y) {
  __shared__ uint32 left[kCoreTile][kCoreRow];
  __shared__ uint32 right[kCoreTile][kCoreRow];
  const Tile tile = tile_of(p, kCoreTile);
  const Base base = base_of(p, a, b, tile.z);
  const B_TYPE padding = f.b_zero ? *f.b_zero : B_TYPE{};
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int down = warp / 4 * 64, across = warp % 4 * 32;
  const int g = lane / 4, t = lane % 4;
  Sum sums[4][4][4] = {};
  int32 of_a[4][4] = {}, of_b[4][4] = {};
  for (int32 k = 0; k < p.depth; k += 4 * kCoreWords) {
    for (int at = threadIdx.x; at < kCoreTile * kCoreWords; at += kThreads) {
      const int row = p.rows_first_a ? at % kCoreTile : at / kCoreWords;
      const int word = p.rows_first_a ? at / kCoreTile : at % kCoreWords;
      left[row][word] = word_of_a(p, base.a, tile.row + row, k + 4 * word);
      const int column = p.columns_first_b ? at % kCoreTile : at / kCoreWords;
      const int down_word = p.columns_first_b ? at / kCoreTile : at % kCoreWords;
      right[column][down_word] =
          word_of_b(p, base.b, k + 4 * down_word, tile.column + column, padding);
    }
    __syncthreads();
    Piece<Sum> piece(sums);
#pragma unroll
    for (int step = 0; step < kCoreWords; step += 8) {
      uint32 x[4][4], w[4][2];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int r = down + i * 16 + g, c = across + i * 8 + g;
        x[i][0] = left[r][step + t];
        x[i][1] = left[r + 8][step + t];
        x[i][2] = left[r][step + t + 4];
        x[i][3] = left[r + 8][step + t + 4];
        w[i][0] = right[c][step + t];
        w[i][1] = right[c][step + t + 4];
      }
#ifndef FLOATS
      // Ones on the other side give the sums of rows and columns.
      const uint32 one_column[2] = {kOnes, kOnes}, one_row[4] = {kOnes, kOnes, kOnes, kOnes};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (f.b_zero) mma_16x8x32<A_TYPE, uint8>(of_a[i], x[i], one_column);
        if (f.a_zero) mma_16x8x32<uint8, B_TYPE>(of_b[i], one_row, w[i]);
      }
#endif
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) mma_16x8x32<A_TYPE, B_TYPE>(piece.of(i, j), x[i], w[j]);
    }
    piece.add_to(sums);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const int32 row = tile.row + down + i * 16 + g + part / 2 * 8;
        const int32 column = tile.column + across + j * 8 + 2 * t + part % 2;
        if (row >= p.rows || column >= p.columns) continue;
        const int32 at = whole_row(p, tile.z, row);
        const Sum sum =
            centered(p.depth, f, sums[i][j][part], of_a[i][part], of_b[j][part], at, column);
        y[(tile.z * p.rows + row) * p.columns + column] = finished(f, sum, at, column);
      }
}
#endif
