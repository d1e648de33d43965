// Softmax and its logarithm of [outer, size, inner] along the middle. Bound by memory: rows of up to
// 4096 elements stay in registers between the passes, so that they are read once; longer ones are
// read three times, mostly from the cache. A row of minus infinities gives NaN.
//
// softmax_rows (inner is 1): a block for each row. softmax_columns: a thread for each column, a warp
// on neighbouring columns.
//
// Compiled with: -DELEMENT=float -DLOGARITHM=0
// Compiled with: -DELEMENT=f16 -DLOGARITHM=0
// Compiled with: -DELEMENT=bf16 -DLOGARITHM=1
#include "reduce.cuh"

__device__ __forceinline__ float finish(float x, float top, float total, float log_total) {
  return LOGARITHM ? x - top - log_total : expf(x - top) / total;
}

constexpr int kHeld = 16;

/// grid (rows); 32 to 256 threads.
extern "C" __global__ void __launch_bounds__(256)
    softmax_rows(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y, Size size) {
  x += int64(blockIdx.x) * size;
  y += int64(blockIdx.x) * size;
  const Size threads = blockDim.x;
  float held[kHeld];
  const bool holds = size <= kHeld * threads;
  float top = Greater::start(), total = 0;
  if (holds) {
#pragma unroll
    for (int k = 0; k < kHeld; ++k) {
      const Size i = k * threads + threadIdx.x;
      held[k] = i < size ? to_float(x[i]) : Greater::start();
      top = Greater()(top, held[k]);
    }
  } else {
    for (Size i = threadIdx.x; i < size; i += threads) top = Greater()(top, to_float(x[i]));
  }
  top = block_join(top, Greater());
  if (holds) {
#pragma unroll
    for (int k = 0; k < kHeld; ++k)
      if (k * threads + threadIdx.x < size) total += expf(held[k] - top);
  } else {
    for (Size i = threadIdx.x; i < size; i += threads) total += expf(to_float(x[i]) - top);
  }
  total = block_join(total, Plus());
  const float log_total = logf(total);
  if (holds) {
#pragma unroll
    for (int k = 0; k < kHeld; ++k) {
      const Size i = k * threads + threadIdx.x;
      if (i < size) y[i] = from_float<ELEMENT>(finish(held[k], top, total, log_total));
    }
  } else {
    for (Size i = threadIdx.x; i < size; i += threads)
      y[i] = from_float<ELEMENT>(finish(to_float(x[i]), top, total, log_total));
  }
}

/// The sum is kept relative to the greatest element so far, so that it takes one pass.
extern "C" __global__ void __launch_bounds__(256)
    softmax_columns(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y, Size outer, Size size,
                    Size inner) {
  each_element(outer * inner, [&](Size column) {
    const Size at = column / inner * size * inner + column % inner;
    float top = to_float(x[at]), total = 1;
    for (Size k = 1; k < size; ++k) {
      const float value = to_float(x[at + k * inner]);
      if (value > top || value != value) {
        total = total * expf(top - value) + 1;
        top = value;
      } else {
        total += expf(value - top);
      }
    }
    const float log_total = logf(total);
    for (Size k = 0; k < size; ++k)
      y[at + k * inner] =
          from_float<ELEMENT>(finish(to_float(x[at + k * inner]), top, total, log_total));
  });
}
