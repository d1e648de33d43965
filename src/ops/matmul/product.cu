// Matrix products and what can be written as such: y[z] = epilogue(sum over k of A[z] B[z]). A
// block of 256 threads makes a tile of 64 x 64 results, each thread 4 x 4 of them in registers,
// from slices of depth 16 that all load into shared memory; the next slice is fetched while this
// one is used. What differs between matrices, convolutions and their gradients is where an element
// of A and B comes from: convolutions never write their columns out. Bound by arithmetic for large
// sizes.
//
// Compiled with: A_TYPE, B_TYPE, Y_TYPE (in memory), LANE (sums), MODE; the epilogue comes before.

#include "product.cuh"

constexpr int kTile = 64;
constexpr int kSlice = 16;
constexpr int kThreads = 256;
constexpr int kLoads = kTile * kSlice / kThreads;

__device__ __forceinline__ A_TYPE load_a(const Problem& p, const A_TYPE* a, int32 row, int32 k) {
  if (row >= p.rows || k >= p.depth) return {};
#if MODE == MODE_MATRICES
  return a[row * p.a_row + k * p.a_column];
#elif MODE == MODE_CONV
  return a[static_cast<int64>(row) * p.depth + k];
#elif MODE == MODE_CONV_DATA
  const int32 filter = k / p.taps, tap = k % p.taps;
  return a[(static_cast<int64>(filter) * p.rows + row) * p.taps + tap];
#else
  const int32 image = k / p.out_cells, at = k % p.out_cells;
  const int64 plane = static_cast<int64>(image) * p.group * p.rows + row;
  return a[plane * p.out_cells + at];
#endif
}

__device__ __forceinline__ B_TYPE load_b(const Problem& p, const B_TYPE* b, int32 k, int32 column) {
  if (column >= p.columns || k >= p.depth) return {};
#if MODE == MODE_MATRICES
  return b[k * p.b_row + column * p.b_column];
#elif MODE == MODE_CONV
  const int32 channel = k / p.taps, cell = input_cell(p, k % p.taps, column);
  return cell < 0 ? B_TYPE{} : b[static_cast<int64>(channel) * p.in_cells + cell];
#elif MODE == MODE_CONV_DATA
  const int32 filter = k / p.taps, cell = output_cell(p, k % p.taps, column);
  return cell < 0 ? B_TYPE{} : b[static_cast<int64>(filter) * p.out_cells + cell];
#else
  const int32 image = k / p.out_cells, channel = column / p.taps;
  const int32 cell = input_cell(p, column % p.taps, k % p.out_cells);
  const int64 plane = static_cast<int64>(image) * p.group * p.channels + channel;
  return cell < 0 ? B_TYPE{} : b[plane * p.in_cells + cell];
#endif
}

// Neighbouring threads load neighbouring addresses: which of the two axes of a slice that is
// depends on how the matrix lies.
__device__ __forceinline__ int2 place_in_slice(int load, int along_depth) {
  const int at = load * kThreads + threadIdx.x;
  return along_depth ? make_int2(at / kSlice, at % kSlice) : make_int2(at % kTile, at / kTile);
}

__device__ __forceinline__ void fetch(const Problem& p, const Base& base, int32 row, int32 column,
                                      int32 k, LANE (&a)[kLoads], LANE (&b)[kLoads]) {
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const int2 left = place_in_slice(i, !p.rows_first_a);
    const int2 right = place_in_slice(i, !p.columns_first_b);
    a[i] = widen<LANE>(load_a(p, base.a, row + left.x, k + left.y));
    b[i] = widen<LANE>(load_b(p, base.b, k + right.y, column + right.x));
  }
}

/// The batch entry and the first row of the result as the epilogue counts them.
struct Rows {
  int64 batch, first;
};
__device__ __forceinline__ Rows rows_of(const Problem& p, int64 z) {
#if MODE == MODE_CONV || MODE == MODE_CONV_DATA
  return {z / p.group, z % p.group * p.rows};
#else
  return {z, 0};
#endif
}

__device__ __forceinline__ void finish(const Problem& p, const Epilogue& epilogue,
                                       const Rows& place, int64 z, int32 row, int32 column,
                                       LANE sum, Y_TYPE* y) {
  if (row < p.rows && column < p.columns)
    y[(z * p.rows + row) * p.columns + column] =
        narrow<Y_TYPE>(epilogue.apply(sum, place.batch, place.first + row, column));
}

extern "C" __global__ void __launch_bounds__(256)
    product(Problem p, Epilogue epilogue, const A_TYPE* a, const B_TYPE* b, Y_TYPE* y) {
  __shared__ LANE left[kSlice][kTile + 4];
  __shared__ LANE right[kSlice][kTile + 4];
  const uint32 tiles_down = (p.rows + kTile - 1) / kTile;
  const uint32 tiles_across = (p.columns + kTile - 1) / kTile;
  const uint32 tiles = tiles_down * tiles_across;
  const int64 z = blockIdx.x / tiles;
  const uint32 tile = blockIdx.x % tiles;
  const int32 row = tile / tiles_across * kTile, column = tile % tiles_across * kTile;
  const int down = threadIdx.x / 16 * 4, across = threadIdx.x % 16 * 4;
  const Base base = base_of(p, a, b, z);

  LANE sums[4][4] = {};
  LANE next_a[kLoads], next_b[kLoads];
  fetch(p, base, row, column, 0, next_a, next_b);
  for (int32 k = 0; k < p.depth; k += kSlice) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int2 to_left = place_in_slice(i, !p.rows_first_a);
      const int2 to_right = place_in_slice(i, !p.columns_first_b);
      left[to_left.y][to_left.x] = next_a[i];
      right[to_right.y][to_right.x] = next_b[i];
    }
    __syncthreads();
    if (k + kSlice < p.depth) fetch(p, base, row, column, k + kSlice, next_a, next_b);
#pragma unroll
    for (int d = 0; d < kSlice; ++d) {
      LANE x[4], w[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        x[i] = left[d][down + i];
        w[i] = right[d][across + i];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] += x[i] * w[j];
    }
    __syncthreads();
  }

  const Rows place = rows_of(p, z);
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      finish(p, epilogue, place, z, row + down + i, column + across + j, sums[i][j], y);
}
