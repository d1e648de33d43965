// Gathering by indices. Bound by memory. WORD is an unsigned type of the element's size, or of as
// much of a slice as 16 bytes hold; INDEX is int32 or int64. Negative indices count from the end; one
// outside is reported and reads nothing.
//
// gather_backward adds in the order of the indices, so that a result has the same bits each time: the
// block of the first of equal indices sums the slices of all of them. ELEMENT is the type of dy.
//
// Compiled with: -DWORD=uint32 -DINDEX=int64
// Compiled with: -DWORD=uint4 -DINDEX=int64
// Compiled with: -DWORD=uint16 -DINDEX=int32 -DELEMENT=f16
// Compiled with: -DWORD=uint32 -DINDEX=int64 -DELEMENT=float
#include "tuple.cuh"

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

/// indices [count, tuple.length], of which each batch entry has `per_batch`: the slices of data
/// [batches, slices, inner] that the tuples name. A thread for each word of y.
extern "C" __global__ void __launch_bounds__(256)
    gather_tuples(const WORD* __restrict__ data, const INDEX* __restrict__ indices,
                  WORD* __restrict__ y, Size count, Size per_batch, Size slices, Size inner,
                  Tuple tuple, FaultRecord* fault, int step) {
  each_element(count * inner, [&](Size i) {
    const Size own = i / inner;
    const int64 slice = slice_of(indices, own, tuple, fault, step);
    if (slice >= 0) y[i] = data[(own / per_batch * slices + slice) * inner + i % inner];
  });
}

#ifdef ELEMENT
extern "C" __global__ void __launch_bounds__(256) clear(ELEMENT* __restrict__ y, Size count) {
  each_element(count, [&](Size i) { y[i] = from_float<ELEMENT>(0.0f); });
}

/// dy [outer, count, inner] added to the slices of y [outer, size, inner], which is zero before: grid
/// (count, outer).
extern "C" __global__ void __launch_bounds__(256)
    gather_backward(const ELEMENT* __restrict__ dy, const INDEX* __restrict__ indices,
                    ELEMENT* __restrict__ y, Size size, Size count, Size inner,
                    FaultRecord* fault, int step) {
  const Size own = blockIdx.x;
  const INDEX wanted = indices[own], other = wanted < 0 ? wanted + size : wanted - size;
  const int64 at = checked_index(wanted, size, fault, step);
  int earlier = 0;
  for (Size i = threadIdx.x; i < own; i += blockDim.x)
    earlier |= indices[i] == wanted || indices[i] == other;
  if (__syncthreads_or(earlier) || at < 0) return;
  dy += int64(blockIdx.y) * count * inner;
  y += (int64(blockIdx.y) * size + at) * inner;
  for (Size e = threadIdx.x; e < inner; e += blockDim.x) {
    float total = 0;
    for (Size i = own; i < count; ++i)
      if (indices[i] == wanted || indices[i] == other) total += to_float(dy[i * inner + e]);
    y[e] = from_float<ELEMENT>(total);
  }
}
#endif
