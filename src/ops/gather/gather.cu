// Gathering by indices. Bound by memory. WORD is an unsigned type of the element's size, or of as
// much of a slice as 16 bytes hold; INDEX is int32 or int64. Negative indices count from the end; one
// outside is reported and reads nothing.
//
// Compiled with: -DWORD=uint32 -DINDEX=int64
// Compiled with: -DWORD=uint4 -DINDEX=int64
// Compiled with: -DWORD=uint16 -DINDEX=int32
#include "fault.cuh"

/// data [outer, size, inner], indices [count] to y [outer, count, inner]: embedding when outer is 1.
/// A thread for each word of y, so that a warp reads and writes runs of a slice.
extern "C" __global__ void __launch_bounds__(256)
    gather(const WORD* __restrict__ data, const INDEX* __restrict__ indices, WORD* __restrict__ y,
           Size outer, Size size, Size count, Size inner, FaultRecord* fault, int step) {
  each_element(outer * count * inner, [&](Size i) {
    const Size slice = i / inner;
    const int64 at = checked_index(indices[slice % count], size, fault, step);
    if (at >= 0) y[i] = data[(slice / count * size + at) * inner + i % inner];
  });
}

/// indices [outer, count, inner]: one element of data [outer, size, inner] for each.
extern "C" __global__ void __launch_bounds__(256)
    gather_elements(const WORD* __restrict__ data, const INDEX* __restrict__ indices,
                    WORD* __restrict__ y, Size outer, Size size, Size count, Size inner,
                    FaultRecord* fault, int step) {
  each_element(outer * count * inner, [&](Size i) {
    const int64 at = checked_index(indices[i], size, fault, step);
    if (at >= 0) y[i] = data[(i / inner / count * size + at) * inner + i % inner];
  });
}
