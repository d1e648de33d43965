// Batch normalisation in training and its gradient, of x [outer, channels, inner]. Bound by memory:
// the moments take two passes over x (nothing cancels in the variance), the gradient's sums one over
// dy and x; a block for each channel walks its elements, neighbours by neighbouring threads where
// inner is not 1. The elementwise halves follow as launches of their own.
//
// Compiled with: -DELEMENT=float
// Compiled with: -DELEMENT=f16
// Compiled with: -DELEMENT=bf16
#include "reduce.cuh"

/// Element k of a channel.
__device__ __forceinline__ Size place(Size k, Size channel, Size channels, Size inner) {
  return (k / inner * channels + channel) * inner + k % inner;
}

/// grid (channels); `count` elements of a channel. moments [2, channels]: mean and inverse deviation.
/// The other outputs may be null: running mean and variance, and the moments in the tensor's type.
extern "C" __global__ void __launch_bounds__(256)
    batch_moments(const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ old_mean,
                  const ELEMENT* __restrict__ old_variance, float* __restrict__ moments,
                  ELEMENT* __restrict__ new_mean, ELEMENT* __restrict__ new_variance,
                  ELEMENT* __restrict__ own_mean, ELEMENT* __restrict__ own_inverse, Size count,
                  Size channels, Size inner, float momentum, float epsilon) {
  const Size channel = blockIdx.x;
  float sum = 0, square = 0;
  for (Size k = threadIdx.x; k < count; k += blockDim.x)
    sum += to_float(x[place(k, channel, channels, inner)]);
  const float mean = block_join(sum, Plus()) / static_cast<float>(count);
  for (Size k = threadIdx.x; k < count; k += blockDim.x) {
    const float distance = to_float(x[place(k, channel, channels, inner)]) - mean;
    square += distance * distance;
  }
  const float variance = block_join(square, Plus()) / static_cast<float>(count);
  if (threadIdx.x != 0) return;
  const float inverse = 1.0f / sqrtf(variance + epsilon);
  moments[channel] = mean;
  moments[channels + channel] = inverse;
  const float fresh = 1 - momentum;
  if (new_mean)
    new_mean[channel] =
        from_float<ELEMENT>(to_float(old_mean[channel]) * momentum + mean * fresh);
  if (new_variance)
    new_variance[channel] =
        from_float<ELEMENT>(to_float(old_variance[channel]) * momentum + variance * fresh);
  if (own_mean) own_mean[channel] = from_float<ELEMENT>(mean);
  if (own_inverse) own_inverse[channel] = from_float<ELEMENT>(inverse);
}

extern "C" __global__ void __launch_bounds__(256)
    batch_apply(const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ scale,
                const ELEMENT* __restrict__ bias, const float* __restrict__ moments,
                ELEMENT* __restrict__ y, Size elements, Size channels, Size inner) {
  each_element(elements, [&](Size i) {
    const Size channel = i / inner % channels;
    const float factor = to_float(scale[channel]) * moments[channels + channel];
    y[i] = from_float<ELEMENT>((to_float(x[i]) - moments[channel]) * factor +
                               to_float(bias[channel]));
  });
}

/// grid (channels); sums [2, channels]: of dy and of dy times the normalised x, which are the
/// gradients of bias and scale.
extern "C" __global__ void __launch_bounds__(256)
    batch_sums(const ELEMENT* __restrict__ dy, const ELEMENT* __restrict__ x,
               const ELEMENT* __restrict__ mean, const ELEMENT* __restrict__ inverse,
               float* __restrict__ sums, ELEMENT* __restrict__ d_scale,
               ELEMENT* __restrict__ d_bias, Size count, Size channels, Size inner) {
  const Size channel = blockIdx.x;
  const float middle = to_float(mean[channel]), factor = to_float(inverse[channel]);
  float plain = 0, scaled = 0;
  for (Size k = threadIdx.x; k < count; k += blockDim.x) {
    const Size at = place(k, channel, channels, inner);
    const float slope = to_float(dy[at]);
    plain += slope;
    scaled += slope * (to_float(x[at]) - middle) * factor;
  }
  plain = block_join(plain, Plus());
  scaled = block_join(scaled, Plus());
  if (threadIdx.x != 0) return;
  sums[channel] = plain;
  sums[channels + channel] = scaled;
  if (d_scale) d_scale[channel] = from_float<ELEMENT>(scaled);
  if (d_bias) d_bias[channel] = from_float<ELEMENT>(plain);
}

extern "C" __global__ void __launch_bounds__(256)
    batch_backward(const ELEMENT* __restrict__ dy, const ELEMENT* __restrict__ x,
                   const ELEMENT* __restrict__ scale, const ELEMENT* __restrict__ mean,
                   const ELEMENT* __restrict__ inverse, const float* __restrict__ sums,
                   ELEMENT* __restrict__ dx, Size elements, Size count, Size channels,
                   Size inner) {
  const float share = 1.0f / static_cast<float>(count);
  each_element(elements, [&](Size i) {
    const Size channel = i / inner % channels;
    const float factor = to_float(inverse[channel]);
    const float normal = (to_float(x[i]) - to_float(mean[channel])) * factor;
    const float slope =
        to_float(dy[i]) - (sums[channel] + normal * sums[channels + channel]) * share;
    dx[i] = from_float<ELEMENT>(slope * factor * to_float(scale[channel]));
  });
}
