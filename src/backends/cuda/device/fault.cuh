#pragma once

#include "number.cuh"

/// What a kernel found wrong in its data; as the host declares it. The first one stands.
struct FaultRecord {
  int problem;
  int step;
  int64 index;
};

__device__ __forceinline__ void report_fault(FaultRecord* fault, int problem, int step,
                                             int64 index) {
  if (atomicCAS(&fault->problem, 0, problem) != 0) return;
  fault->step = step;
  fault->index = index;
}

/// An index into `size` entries, counted from the end when it is negative; -1 when it lies outside,
/// which is reported.
__device__ __forceinline__ int64 checked_index(int64 index, int64 size, FaultRecord* fault,
                                               int step) {
  const int64 at = index < 0 ? index + size : index;
  if (at >= 0 && at < size) return at;
  report_fault(fault, 1, step, index);
  return -1;
}
