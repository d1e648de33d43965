// Copies that reorder. Bound by memory; WORD is an unsigned type of the element's size, or of a
// whole run of elements that stay together.
//
// transpose_tiles: [batch, rows, columns] to [batch, columns, rows] through tiles of 32 by 32 in
// shared memory, so that both sides are touched in runs; a column more keeps the banks apart.
// permute: any order of up to eight axes; writes in runs, reads by strides.
//
// Compiled with: -DWORD=uint32
// Compiled with: -DWORD=uint16
// Compiled with: -DWORD=uint8
// Compiled with: -DWORD=uint2
// Compiled with: -DWORD=uint4
#include "number.cuh"

constexpr int kTile = 32, kRows = 8, kMostAxes = 8;

/// 32 by 8 threads; grid (columns / 32, rows / 32, batch).
extern "C" __global__ void __launch_bounds__(kTile * kRows)
    transpose_tiles(const WORD* __restrict__ x, WORD* __restrict__ y, Size rows, Size columns) {
  __shared__ WORD tile[kTile][kTile + 1];
  x += int64(blockIdx.z) * rows * columns;
  y += int64(blockIdx.z) * rows * columns;
  const Size column = blockIdx.x * kTile + threadIdx.x;
  const Size first = blockIdx.y * kTile;
  for (Size k = threadIdx.y; k < kTile; k += kRows)
    if (column < columns && first + k < rows) tile[k][threadIdx.x] = x[(first + k) * columns + column];
  __syncthreads();
  const Size row = first + threadIdx.x;
  for (Size k = threadIdx.y; k < kTile; k += kRows) {
    const Size to = blockIdx.x * kTile + k;
    if (to < columns && row < rows) y[to * rows + row] = tile[threadIdx.x][k];
  }
}

/// Output sizes and the input's strides, the last axis first.
struct Permutation {
  Size sizes[kMostAxes];
  Size strides[kMostAxes];
  int rank;
};

extern "C" __global__ void __launch_bounds__(256)
    permute(const WORD* __restrict__ x, WORD* __restrict__ y, Size count, Permutation by) {
  each_element(count, [&](Size i) {
    Size rest = i, from = 0;
#pragma unroll
    for (int axis = 0; axis < kMostAxes; ++axis) {
      if (axis >= by.rank) break;
      from += rest % by.sizes[axis] * by.strides[axis];
      rest /= by.sizes[axis];
    }
    y[i] = x[from];
  });
}
