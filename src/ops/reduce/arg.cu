// The place of the greatest or least element along an axis, the first or the last of equals; the
// first NaN beats every number. Values and places become one 64-bit key, of which the least wins,
// so that the result does not depend on who compares with whom. Bound by memory.
//
// Compiled with: -DELEMENT=float -DLEAST=0 -DLAST=0
// Compiled with: -DELEMENT=f16 -DLEAST=1 -DLAST=1
// Compiled with: -DELEMENT=int32 -DLEAST=0 -DLAST=1
#include "order.cuh"

/// Whether there are elements that are no numbers.
template <typename T>
constexpr uint32 kMayBeNan = 1;
template <>
constexpr uint32 kMayBeNan<int32> = 0;

/// Keys of numbers that may be NaN are from 2^32 on, those of NaN below.
__device__ __forceinline__ uint64 key_of(ELEMENT value, Size place) {
  if (kMayBeNan<ELEMENT> && to_float(value) != to_float(value)) return place;
  const uint32 order = (LEAST ? ordered(value) : ~ordered(value)) + kMayBeNan<ELEMENT>;
  return uint64(order) << 32 | (LAST ? ~place : place);
}
__device__ __forceinline__ int64 place_of(uint64 key) {
  const Size low = static_cast<Size>(key);
  return LAST && key >> 32 >= kMayBeNan<ELEMENT> ? ~low : low;
}

__device__ __forceinline__ uint64 lesser(uint64 a, uint64 b) { return a < b ? a : b; }
__device__ __forceinline__ uint64 warp_least(uint64 key) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    key = lesser(key, __shfl_xor_sync(0xffffffffu, key, step));
  return key;
}

/// x [outer, size]: a block for each row.
extern "C" __global__ void __launch_bounds__(256)
    arg_rows(const ELEMENT* __restrict__ x, int64* __restrict__ y, Size size) {
  __shared__ uint64 of_warp[8];
  x += int64(blockIdx.x) * size;
  uint64 key = ~uint64(0);
  for (Size i = threadIdx.x; i < size; i += blockDim.x) key = lesser(key, key_of(x[i], i));
  key = warp_least(key);
  const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
  if (lane == 0) of_warp[threadIdx.x / 32] = key;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  key = warp_least(lane < warps ? of_warp[lane] : ~uint64(0));
  if (lane == 0) y[blockIdx.x] = place_of(key);
}

/// x [outer, size, inner]: a thread for each result, neighbours side by side.
extern "C" __global__ void __launch_bounds__(256)
    arg_columns(const ELEMENT* __restrict__ x, int64* __restrict__ y, Size outer, Size size,
                Size inner) {
  each_element(outer * inner, [&](Size i) {
    const ELEMENT* from = x + int64(i / inner) * size * inner + i % inner;
    uint64 key = ~uint64(0);
    for (Size k = 0; k < size; ++k) key = lesser(key, key_of(from[int64(k) * inner], k));
    y[i] = place_of(key);
  });
}
