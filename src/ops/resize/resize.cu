// Resampling of [outer, in, inner] along the middle by taps that the host worked out: one axis after
// the other. Bound by memory: a thread for each output; a warp writes a run and reads the few slices
// that its taps name.
//
// Compiled with: -DELEMENT=float
// Compiled with: -DELEMENT=f16
#include "number.cuh"

struct Tap {
  int index;
  float weight;
};

/// Output o of the axis is the sum of taps [first[o], first[o + 1]); none: `outside`.
extern "C" __global__ void __launch_bounds__(256)
    resize_axis(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y, const Tap* __restrict__ taps,
                const int* __restrict__ first, Size outer, Size in, Size out, Size inner,
                float outside) {
  each_element(outer * out * inner, [&](Size i) {
    const Size o = i / inner % out, base = i / inner / out * in * inner + i % inner;
    const int from = first[o], to = first[o + 1];
    float total = from == to ? outside : 0.0f;
    for (int k = from; k < to; ++k) {
      const Tap tap = taps[k];
      total += tap.weight * to_float(x[base + tap.index * inner]);
    }
    y[i] = from_float<ELEMENT>(total);
  });
}
