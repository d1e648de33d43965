// Normalisation of rows of neighbouring elements by their own mean and variance: layer, RMS, group
// and instance normalisation differ in what a row is and in which scale an element takes.
//
// Bound by memory. A block for each row; rows of up to 4096 elements stay in registers, so that
// they are read once. The variance is the mean of squared distances to the mean, in a second pass
// over what is held: nothing cancels. Element i of row r takes scale
// r % groups * (size / inner) + i / inner.
//
// batch_norm: each channel by a factor and a summand that the host worked out.
//
// Compiled with: -DELEMENT=float -DRMS=0
// Compiled with: -DELEMENT=f16 -DRMS=1
// Compiled with: -DELEMENT=bf16 -DRMS=0
#include "reduce.cuh"

constexpr int kHeld = 16;

/// Calls body(i, x[i] as float) for this thread's elements of a row, from registers when they fit.
template <typename Body>
__device__ __forceinline__ void each(const float (&held)[kHeld], const ELEMENT* x, Size size,
                                     Body body) {
  const Size threads = blockDim.x;
  if (size <= kHeld * threads) {
#pragma unroll
    for (int k = 0; k < kHeld; ++k) {
      const Size i = k * threads + threadIdx.x;
      if (i < size) body(i, held[k]);
    }
  } else {
    for (Size i = threadIdx.x; i < size; i += threads) body(i, to_float(x[i]));
  }
}

/// grid (rows); 32 to 256 threads. `bias`, `means` and `deviations` may be null; the latter two get
/// a row's mean and the inverse of its deviation.
extern "C" __global__ void __launch_bounds__(256)
    norm_rows(const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ scale, const ELEMENT* __restrict__ bias,
              ELEMENT* __restrict__ y, float* __restrict__ means, float* __restrict__ deviations,
              Size size, Size inner, Size groups, float epsilon) {
  const Size row = blockIdx.x;
  x += int64(row) * size;
  y += int64(row) * size;
  float held[kHeld];
#pragma unroll
  for (int k = 0; k < kHeld; ++k) {
    const Size i = k * blockDim.x + threadIdx.x;
    held[k] = size <= kHeld * blockDim.x && i < size ? to_float(x[i]) : 0.0f;
  }
  float mean = 0;
  if (!RMS) {
    each(held, x, size, [&](Size, float value) { mean += value; });
    mean = block_join(mean, Plus()) / static_cast<float>(size);
  }
  float square = 0;
  each(held, x, size, [&](Size, float value) { square += (value - mean) * (value - mean); });
  const float variance = block_join(square, Plus()) / static_cast<float>(size);
  const float inverse = 1.0f / sqrtf(variance + epsilon);
  const Size first = row % groups * (size / inner);
  each(held, x, size, [&](Size i, float value) {
    const Size channel = inner == 1 ? first + i : first + i / inner;
    float result = (value - mean) * inverse * to_float(scale[channel]);
    if (bias) result += to_float(bias[channel]);
    y[i] = from_float<ELEMENT>(result);
  });
  if (threadIdx.x == 0) {
    if (means) means[row] = mean;
    if (deviations) deviations[row] = inverse;
  }
}

/// y = (x - mean) * scale / sqrt(variance + epsilon) + bias, of [outer, channels, inner].
extern "C" __global__ void __launch_bounds__(256)
    batch_norm(const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ scale, const ELEMENT* __restrict__ bias,
               const ELEMENT* __restrict__ mean, const ELEMENT* __restrict__ variance, ELEMENT* __restrict__ y,
               Size count, Size channels, Size inner, float epsilon) {
  each_element(count, [&](Size i) {
    const Size channel = i / inner % channels;
    const float factor =
        to_float(scale[channel]) / sqrtf(to_float(variance[channel]) + epsilon);
    y[i] = from_float<ELEMENT>((to_float(x[i]) - to_float(mean[channel])) * factor +
                         to_float(bias[channel]));
  });
}
