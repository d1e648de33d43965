#pragma once

#include "fault.cuh"

constexpr int kMostAxes = 8;

/// The axes that a tuple of indices names; as the host declares it (ops/gather/tuple_cuda.h).
struct Tuple {
  Size sizes[kMostAxes];
  int length;
};

/// The slice that tuple i of indices [count, tuple.length] names; -1 when it lies outside, which is
/// reported.
template <typename Index>
__device__ __forceinline__ int64 slice_of(const Index* indices, Size i, const Tuple& tuple,
                                          FaultRecord* fault, int step) {
  int64 slice = 0;
#pragma unroll
  for (int axis = 0; axis < kMostAxes; ++axis) {
    if (axis >= tuple.length || slice < 0) break;
    const int64 at =
        checked_index(indices[i * tuple.length + axis], tuple.sizes[axis], fault, step);
    slice = at < 0 ? -1 : slice * tuple.sizes[axis] + at;
  }
  return slice;
}
