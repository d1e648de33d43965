// Tensors that are computed from few numbers: ranges, and a one at an index. Bound by memory: each
// element is written once.
//
// Compiled with: -DELEMENT=int64 -DLANE=int64 -DINDEX=int64
// Compiled with: -DELEMENT=float -DLANE=double -DINDEX=int32
#include "number.cuh"

/// y[i] = start + i * delta, in the type that the CPU computes in.
extern "C" __global__ void __launch_bounds__(256)
    range(const ELEMENT* __restrict__ start, const ELEMENT* __restrict__ delta,
          ELEMENT* __restrict__ y, Size count) {
  const LANE first = static_cast<LANE>(*start), step = static_cast<LANE>(*delta);
  each_element(count, [&](Size i) {
    y[i] = static_cast<ELEMENT>(first + static_cast<LANE>(i) * step);
  });
}

/// indices [outer, inner] to y [outer, depth, inner]; values: off and on. Indices below zero count
/// from the end.
extern "C" __global__ void __launch_bounds__(256)
    one_hot(const INDEX* __restrict__ indices, const ELEMENT* __restrict__ values,
            ELEMENT* __restrict__ y, Size count, Size depth, Size inner) {
  const ELEMENT off = values[0], on = values[1];
  each_element(count, [&](Size i) {
    const Size at = i / inner % depth;
    const int64 index = static_cast<int64>(indices[i / inner / depth * inner + i % inner]);
    y[i] = (index < 0 ? index + int64(depth) : index) == int64(at) ? on : off;
  });
}
