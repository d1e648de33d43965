#pragma once

#include "elementwise.cuh"
#include "reduce.cuh"

// What generated kernels with reductions are made of: a block holds one row at a time, HELD elements
// in the registers of each thread, so that whatever the row is joined for, it is read once.

/// Rows of `size` elements. Operands step by `strides` along the axes of the rows, the last one
/// first, and by `inner` (1 or 0) within a row.
template <int operands>
struct RowSpace {
  int64 rows;
  uint32 size;
  int32 outer;
  uint32 sizes[kMostOuter];
  int64 strides[operands][kMostOuter];
  int32 inner[operands];
};

/// Where a row begins in each operand.
template <int operands>
__device__ __forceinline__ void locate_row(const RowSpace<operands>& space, int64 row, int64* at) {
  uint32 rest = static_cast<uint32>(row);
#pragma unroll
  for (int k = 0; k < operands; ++k) at[k] = 0;
  for (int axis = 0; axis < space.outer; ++axis) {
    const uint32 index = rest % space.sizes[axis];
    rest /= space.sizes[axis];
#pragma unroll
    for (int k = 0; k < operands; ++k) at[k] += index * space.strides[k][axis];
  }
}

/// The elements that a thread holds: `k` counts them, `i` is the place in the row.
#define EACH_HELD(k, i)                                                        \
  _Pragma("unroll") for (int k = 0; k < HELD; ++k)                             \
    if (const uint32 i = k * blockDim.x + threadIdx.x; i < space.size)
