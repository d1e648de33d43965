#pragma once

#include "number.cuh"

// Joining values of a warp or a block. The order in which values are joined depends on their places
// only, so that a result has the same bits each time.

struct Plus {
  static __device__ __forceinline__ float start() { return 0.0f; }
  __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};
struct Times {
  static __device__ __forceinline__ float start() { return 1.0f; }
  __device__ __forceinline__ float operator()(float a, float b) const { return a * b; }
};
/// NaN wins.
struct Greater {
  static __device__ __forceinline__ float start() { return -infinity(); }
  __device__ __forceinline__ float operator()(float a, float b) const {
    return a > b || a != a ? a : b;
  }
};
struct Less {
  static __device__ __forceinline__ float start() { return infinity(); }
  __device__ __forceinline__ float operator()(float a, float b) const {
    return a < b || a != a ? a : b;
  }
};

/// All lanes of the warp take part and get the result.
template <typename Join>
__device__ __forceinline__ float warp_join(float value, Join join) {
  for (int step = 16; step > 0; step /= 2)
    value = join(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}

/// All threads of a one-dimensional block take part and get the result; the block is a multiple of
/// 32 threads. Two barriers.
template <typename Join>
__device__ __forceinline__ float block_join(float value, Join join) {
  __shared__ float of_warp[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  value = warp_join(value, join);
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  value = warp_join(lane < warps ? of_warp[lane] : Join::start(), join);
  __syncthreads();
  return value;
}
