// Each element divided by a power of the squares of its neighbours in other channels. Bound by memory:
// a thread for each element, so that a warp reads runs of neighbouring cells, channel by channel (or
// neighbouring channels when those come last), which the cache keeps for the next.
//
// Compiled with: -DELEMENT=float
// Compiled with: -DELEMENT=f16
#include "number.cuh"

/// x [outer, channels, inner]; the window reaches `before` channels back and `after` ahead.
struct Lrn {
  Size outer, channels, inner, before, after;
  float share, bias, beta;
};

extern "C" __global__ void __launch_bounds__(256)
    lrn(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y, Lrn p) {
  each_element(p.outer * p.channels * p.inner, [&](Size i) {
    const Size channel = i / p.inner % p.channels;
    const Size low = channel < p.before ? 0 : channel - p.before;
    const Size high = min(p.channels - 1, channel + p.after);
    float squares = 0;
    for (Size k = low; k <= high; ++k) {
      const float value = to_float(x[i + (k - channel) * p.inner]);
      squares += value * value;
    }
    y[i] = from_float<ELEMENT>(to_float(x[i]) / powf(p.bias + p.share * squares, p.beta));
  });
}
