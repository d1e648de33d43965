#pragma once

#include "number.cuh"

// What products have in common whatever their elements are: sizes, and where an element of A and B
// comes from. Compiled with A_TYPE, B_TYPE and MODE.

#define MODE_MATRICES 0
#define MODE_CONV 1
#define MODE_CONV_DATA 2
#define MODE_CONV_WEIGHTS 3

struct Problem {
  int32 rows, columns, depth, group;
  int64 a_row, a_column, b_row, b_column;  // steps of matrices
  int64 a_batch[6], b_batch[6];
  uint32 batch_sizes[6];  // the last axis first
  int32 batch_axes, channels;
  int32 in[3], out[3], window[3], stride[3], dilation[3], pad[3];
  int32 taps, in_cells, out_cells, rows_first_a, columns_first_b, packs;
};

struct Base {
  const A_TYPE* a;
  const B_TYPE* b;
};

__device__ __forceinline__ Base base_of(const Problem& p, const A_TYPE* a, const B_TYPE* b,
                                        int64 z) {
#if MODE == MODE_MATRICES
  uint32 rest = static_cast<uint32>(z);
  for (int axis = 0; axis < p.batch_axes; ++axis) {
    const uint32 index = rest % p.batch_sizes[axis];
    rest /= p.batch_sizes[axis];
    a += index * p.a_batch[axis];
    b += index * p.b_batch[axis];
  }
  return {a, b};
#elif MODE == MODE_CONV
  return {a + (z % p.group) * p.rows * p.depth, b + z * p.channels * p.in_cells};
#elif MODE == MODE_CONV_DATA
  return {a + (z % p.group) * p.depth * p.rows, b + z * (p.depth / p.taps) * p.out_cells};
#else
  return {a + z * p.rows * p.out_cells, b + z * p.channels * p.in_cells};
#endif
}

/// Where a window's cell `tap` at position `at` reads, as a cell of the input; -1: in the padding.
__device__ __forceinline__ int32 input_cell(const Problem& p, int32 tap, int32 at) {
  int32 cell = 0, scale = 1;
#pragma unroll
  for (int axis = 2; axis >= 0; --axis) {
    const int32 t = tap % p.window[axis], o = at % p.out[axis];
    tap /= p.window[axis];
    at /= p.out[axis];
    const int32 i = o * p.stride[axis] + t * p.dilation[axis] - p.pad[axis];
    if (i < 0 || i >= p.in[axis]) return -1;
    cell += i * scale;
    scale *= p.in[axis];
  }
  return cell;
}

/// At which position a window's cell `tap` reads input cell `at`; -1: at none.
__device__ __forceinline__ int32 output_cell(const Problem& p, int32 tap, int32 at) {
  int32 cell = 0, scale = 1;
#pragma unroll
  for (int axis = 2; axis >= 0; --axis) {
    const int32 t = tap % p.window[axis], i = at % p.in[axis];
    tap /= p.window[axis];
    at /= p.in[axis];
    const int32 from = i + p.pad[axis] - t * p.dilation[axis];
    if (from < 0 || from % p.stride[axis] != 0) return -1;
    const int32 o = from / p.stride[axis];
    if (o >= p.out[axis]) return -1;
    cell += o * scale;
    scale *= p.out[axis];
  }
  return cell;
}
