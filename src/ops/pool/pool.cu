// Pooling over windows of up to three spatial axes; missing axes have size 1. Bound by memory: a
// thread for each output, neighbouring threads on neighbouring outputs of a row (or on neighbouring
// channels when those come last), so that the windows of a warp share what the cache holds.
//
// Compiled with: -DELEMENT=float -DCHANNELS_LAST=0
// Compiled with: -DELEMENT=f16 -DCHANNELS_LAST=1
// Compiled with: -DELEMENT=bf16 -DCHANNELS_LAST=0
#include "reduce.cuh"

constexpr int kSpatial = 3;
/// Sizes of x and y and the window, by spatial axis.
struct Pooling {
  Size planes;  ///< examples times channels
  Size channels;
  int in[kSpatial], out[kSpatial], kernel[kSpatial], stride[kSpatial], dilation[kSpatial];
  int begin[kSpatial], end[kSpatial];  ///< padding
};

struct Output {
  Size example, first;  ///< the first element of its plane in x
  Size channel; int at[kSpatial];
};

__device__ __forceinline__ Output output_of(Size i, const Pooling& p) {
  Output o;
  Size rest = i;
  if (CHANNELS_LAST) {
    o.channel = rest % p.channels;
    rest /= p.channels;
  }
  for (int axis = kSpatial - 1; axis >= 0; --axis) {
    o.at[axis] = static_cast<int>(rest % p.out[axis]);
    rest /= p.out[axis];
  }
  if (!CHANNELS_LAST) {
    o.channel = rest % p.channels;
    rest /= p.channels;
  }
  o.example = rest;
  const Size space = Size(p.in[0]) * p.in[1] * p.in[2];
  o.first = CHANNELS_LAST ? rest * space * p.channels + o.channel
                          : (rest * p.channels + o.channel) * space;
  return o;
}

/// Calls body(place in the plane) for each element of the window that lies in x.
template <typename Body>
__device__ __forceinline__ void each_tap(const Output& o, const Pooling& p, Body body) {
  for (int a = 0; a < p.kernel[0]; ++a) {
    const int z = o.at[0] * p.stride[0] - p.begin[0] + a * p.dilation[0];
    if (z < 0 || z >= p.in[0]) continue;
    for (int b = 0; b < p.kernel[1]; ++b) {
      const int y = o.at[1] * p.stride[1] - p.begin[1] + b * p.dilation[1];
      if (y < 0 || y >= p.in[1]) continue;
      for (int c = 0; c < p.kernel[2]; ++c) {
        const int x = o.at[2] * p.stride[2] - p.begin[2] + c * p.dilation[2];
        if (x >= 0 && x < p.in[2]) body((Size(z) * p.in[1] + y) * p.in[2] + x);
      }
    }
  }
}

__device__ __forceinline__ Size outputs(const Pooling& p) {
  return p.planes * p.out[0] * p.out[1] * p.out[2];
}

/// Cells of a window that lie within the padded input.
__device__ __forceinline__ int padded_cells(const int (&at)[kSpatial], const Pooling& p) {
  int count = 1;
  for (int axis = 0; axis < kSpatial; ++axis) {
    const int from = at[axis] * p.stride[axis] - p.begin[axis];
    int cells = 0;
    for (int k = 0; k < p.kernel[axis]; ++k)
      cells += from + k * p.dilation[axis] < p.in[axis] + p.end[axis];
    count *= cells;
  }
  return count;
}

/// `indices` (may be null): the place of the greatest element in x seen as channels first.
extern "C" __global__ void __launch_bounds__(256)
    max_pool(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y, int64* __restrict__ indices, Pooling p) {
  const Size step = CHANNELS_LAST ? p.channels : 1;
  each_element(outputs(p), [&](Size i) {
    const Output o = output_of(i, p);
    float best = Greater::start();
    int place = -1;
    each_tap(o, p, [&](Size at) {
      const float value = to_float(x[o.first + at * step]);
      if (place < 0 || value > best || (value != value && best == best)) {
        best = value;
        place = static_cast<int>(at);
      }
    });
    y[i] = from_float<ELEMENT>(best);
    if (indices)
      indices[i] = (int64(o.example) * p.channels + o.channel) * p.in[0] * p.in[1] * p.in[2] + place;
  });
}

extern "C" __global__ void __launch_bounds__(256)
    average_pool(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y, int include_pad, Pooling p) {
  const Size step = CHANNELS_LAST ? p.channels : 1;
  each_element(outputs(p), [&](Size i) {
    const Output o = output_of(i, p);
    float total = 0;
    int count = 0;
    each_tap(o, p, [&](Size at) {
      total += to_float(x[o.first + at * step]);
      ++count;
    });
    if (include_pad) count = padded_cells(o.at, p);
    y[i] = from_float<ELEMENT>(total / static_cast<float>(count));
  });
}

/// The p-norm of each window.
extern "C" __global__ void __launch_bounds__(256)
    lp_pool(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y, int norm, Pooling p) {
  const Size step = CHANNELS_LAST ? p.channels : 1;
  const auto power = static_cast<float>(norm);
  each_element(outputs(p), [&](Size i) {
    const Output o = output_of(i, p);
    float total = 0;
    each_tap(o, p, [&](Size at) {
      const float value = fabsf(to_float(x[o.first + at * step]));
      total += norm == 1 ? value : norm == 2 ? value * value : powf(value, power);
    });
    const float root = norm == 1 ? total : norm == 2 ? sqrtf(total) : powf(total, 1.0f / power);
    y[i] = from_float<ELEMENT>(root);
  });
}

/// Where an element of x lies: the window positions that may see it are all tried, so that each
/// thread sums alone and in order.
struct Input {
  Size first;  ///< the first element of its plane in y
  int at[kSpatial];
};

__device__ __forceinline__ Input input_of(Size i, const Pooling& p) {
  Input o;
  Size rest = i, channel = 0;
  if (CHANNELS_LAST) {
    channel = rest % p.channels;
    rest /= p.channels;
  }
  for (int axis = kSpatial - 1; axis >= 0; --axis) {
    o.at[axis] = static_cast<int>(rest % p.in[axis]);
    rest /= p.in[axis];
  }
  const Size space = Size(p.out[0]) * p.out[1] * p.out[2];
  o.first = CHANNELS_LAST ? rest * space * p.channels + channel : rest * space;
  return o;
}

/// The position whose window has its tap `k` on cell `at`; -1: there is none.
__device__ __forceinline__ int position(int at, int k, int axis, const Pooling& p) {
  const int from = at + p.begin[axis] - k * p.dilation[axis];
  if (from < 0 || from % p.stride[axis] != 0) return -1;
  return from / p.stride[axis] < p.out[axis] ? from / p.stride[axis] : -1;
}

/// Calls body(position in y's plane, z, y, x of the position) for each window that sees the element.
template <typename Body>
__device__ __forceinline__ void each_window(const Input& o, const Pooling& p, Body body) {
#pragma unroll 1
  for (int a = 0; a < p.kernel[0]; ++a) {
    const int z = position(o.at[0], a, 0, p);
    if (z < 0) continue;
#pragma unroll 1
    for (int b = 0; b < p.kernel[1]; ++b) {
      const int y = position(o.at[1], b, 1, p);
      if (y < 0) continue;
#pragma unroll 1
      for (int c = 0; c < p.kernel[2]; ++c) {
        const int x = position(o.at[2], c, 2, p);
        if (x >= 0) body((Size(z) * p.out[1] + y) * p.out[2] + x, z, y, x);
      }
    }
  }
}

__device__ __forceinline__ Size inputs(const Pooling& p) {
  return p.planes * p.in[0] * p.in[1] * p.in[2];
}

/// Each window hands dy to its first element that equals its maximum.
extern "C" __global__ void __launch_bounds__(256, 4)
    max_pool_backward(const ELEMENT* __restrict__ dy, const ELEMENT* __restrict__ x,
                      const ELEMENT* __restrict__ y, ELEMENT* __restrict__ dx, Pooling p) {
  const Size step = CHANNELS_LAST ? p.channels : 1;
  each_element(inputs(p), [&](Size i) {
    const Input o = input_of(i, p);
    const float own = to_float(x[i]);
    const Size cell = (Size(o.at[0]) * p.in[1] + o.at[1]) * p.in[2] + o.at[2];
    const Size first = i - cell * step;
    float total = 0;
    each_window(o, p, [&](Size at, int za, int ya, int xa) {
      const float top = to_float(y[o.first + at * step]);
      if (own != top) return;
      Output window;
      window.first = first;
      window.at[0] = za;
      window.at[1] = ya;
      window.at[2] = xa;
      Size winner = cell;
      bool found = false;
      each_tap(window, p, [&](Size tap) {
        if (found || to_float(x[first + tap * step]) != top) return;
        found = true;
        winner = tap;
      });
      if (winner == cell) total += to_float(dy[o.first + at * step]);
    });
    dx[i] = from_float<ELEMENT>(total);
  });
}

/// What a window's sum is divided by for its mean.
enum Divisor { kReal, kPadded, kNone };

extern "C" __global__ void __launch_bounds__(256, 4)
    average_pool_backward(const ELEMENT* __restrict__ dy, ELEMENT* __restrict__ dx, int divisor,
                          Pooling p) {
  const Size step = CHANNELS_LAST ? p.channels : 1;
  each_element(inputs(p), [&](Size i) {
    const Input o = input_of(i, p);
    float total = 0;
    each_window(o, p, [&](Size at, int z, int y, int x) {
      int count = 1;
      Output window;
      window.at[0] = z;
      window.at[1] = y;
      window.at[2] = x;
      if (divisor == kPadded) count = padded_cells(window.at, p);
      if (divisor == kReal) {
        count = 0;
        each_tap(window, p, [&](Size) { ++count; });
      }
      total += to_float(dy[o.first + at * step]) / static_cast<float>(count);
    });
    dx[i] = from_float<ELEMENT>(total);
  });
}
