// A depthwise convolution that looks back only, and the columns that it hands on. Bound by memory: a
// thread for each output; warps read and write runs of a row.
//
// Compiled with: -DELEMENT=float
// Compiled with: -DELEMENT=f16
#include "number.cuh"

/// Rows are examples times channels; `kept` is what a row looks back, one less than the kernel.
struct Causal {
  Size rows, channels, length, kept;
};

/// Column i of the past followed by x; `past` may be null.
__device__ __forceinline__ float column(const ELEMENT* x, const ELEMENT* past, Size row, Size i,
                                        const Causal& c) {
  if (i >= c.kept) return to_float(x[row * c.length + i - c.kept]);
  return past ? to_float(past[row * c.kept + i]) : 0.0f;
}

/// `bias`, `past` and `present` may be null.
extern "C" __global__ void __launch_bounds__(256)
    causal_conv(const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ w,
                const ELEMENT* __restrict__ bias, const ELEMENT* __restrict__ past,
                ELEMENT* __restrict__ y, Causal c, int gated) {
  each_element(c.rows * c.length, [&](Size i) {
    const Size row = i / c.length, t = i % c.length, channel = row % c.channels;
    float sum = bias ? to_float(bias[channel]) : 0.0f;
    for (Size k = 0; k <= c.kept; ++k)
      sum += to_float(w[channel * (c.kept + 1) + k]) * column(x, past, row, t + k, c);
    y[i] = from_float<ELEMENT>(gated ? sum / (1.0f + expf(-sum)) : sum);
  });
}

extern "C" __global__ void __launch_bounds__(256)
    causal_state(const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ past,
                 ELEMENT* __restrict__ present, Causal c) {
  each_element(c.rows * c.kept, [&](Size i) {
    const Size row = i / c.kept;
    present[i] = from_float<ELEMENT>(column(x, past, row, c.length + i % c.kept, c));
  });
}
