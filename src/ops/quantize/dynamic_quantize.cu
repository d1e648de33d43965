// Quantising to a byte by the range of the data, which holds zero: blocks find the least and greatest
// element of their share, one block joins those and sets scale and zero point, and all elements are
// rounded by them. Bound by memory: x is read twice. Elements that are no numbers count for nothing
// in the range.
//
// Compiled with: no options
#include "reduce.cuh"

/// 256 threads; found: the least of each block, then the greatest of each.
extern "C" __global__ void __launch_bounds__(256)
    find_extremes(const float* __restrict__ x, float* __restrict__ found, Size count) {
  float low = 0, high = 0;
  const Size stride = gridDim.x * blockDim.x;
  for (Size i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    low = fminf(low, x[i]);
    high = fmaxf(high, x[i]);
  }
  low = -block_join(-low, Greater());
  high = block_join(high, Greater());
  if (threadIdx.x != 0) return;
  found[blockIdx.x] = low;
  found[gridDim.x + blockIdx.x] = high;
}

__device__ __forceinline__ float divisor_of(float scale) { return scale == 0 ? 1.0f : scale; }
__device__ __forceinline__ uint8 byte_of(float whole) {
  return static_cast<uint8>(fminf(fmaxf(whole, 0.0f), 255.0f));
}

/// One block of 256 threads.
extern "C" __global__ void __launch_bounds__(256)
    set_scale(const float* __restrict__ found, float* __restrict__ scale, uint8* __restrict__ zero,
              Size pieces) {
  float low = 0, high = 0;
  for (Size i = threadIdx.x; i < pieces; i += blockDim.x) {
    low = fminf(low, found[i]);
    high = fmaxf(high, found[pieces + i]);
  }
  low = -block_join(-low, Greater());
  high = block_join(high, Greater());
  if (threadIdx.x != 0) return;
  *scale = (high - low) / 255;
  *zero = byte_of(rintf(-low / divisor_of((high - low) / 255)));
}

extern "C" __global__ void __launch_bounds__(256)
    quantize_by(const float* __restrict__ x, const float* __restrict__ scale,
                const uint8* __restrict__ zero, uint8* __restrict__ y, Size count) {
  const float divisor = divisor_of(*scale), offset = to_float(*zero);
  each_element(count, [&](Size i) { y[i] = byte_of(rintf(x[i] / divisor) + offset); });
}
