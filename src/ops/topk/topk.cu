// The k greatest or least elements of rows of up to SLOTS elements (a power of two), in order, with
// their places. A block sorts a row in shared memory by a bitonic network over 64-bit keys: the
// value's bits made monotonous above, the place below, so that no two are equal and equal values
// keep their order. NaN counts as greater than every number. Bound by the network's
// log2(SLOTS)^2 / 2 passes over shared memory.
//
// Compiled with: -DELEMENT=float -DSLOTS=256
// Compiled with: -DELEMENT=f16 -DSLOTS=2048
// Compiled with: -DELEMENT=bf16 -DSLOTS=1024
#include "order.cuh"

/// Smaller keys come first.
__device__ __forceinline__ uint64 key_of(float value, Size place, int largest) {
  const uint32 bits = ordered(value);
  return uint64(largest ? ~bits : bits) << 32 | place;
}

/// x [outer, size, inner] to [outer, k, inner]: grid (inner, outer); SLOTS / 2 threads, at most
/// 1024. Rows of one block are strided when inner is not 1.
extern "C" __global__ void __launch_bounds__(1024)
    topk(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ values, int64* __restrict__ places,
         Size size, Size k, Size inner, int largest) {
  __shared__ uint64 keys[SLOTS];
  x += (int64(blockIdx.y) * size) * inner + blockIdx.x;
  for (Size i = threadIdx.x; i < SLOTS; i += blockDim.x)
    keys[i] = i < size ? key_of(to_float(x[int64(i) * inner]), i, largest) : ~uint64(0);
  __syncthreads();
  for (Size run = 2; run <= SLOTS; run *= 2)
    for (Size step = run / 2; step > 0; step /= 2) {
      for (Size t = threadIdx.x; t < SLOTS / 2; t += blockDim.x) {
        const Size low = t / step * 2 * step + t % step, high = low + step;
        const uint64 a = keys[low], b = keys[high];
        if ((a > b) == ((low & run) == 0)) {
          keys[low] = b;
          keys[high] = a;
        }
      }
      __syncthreads();
    }
  for (Size i = threadIdx.x; i < k; i += blockDim.x) {
    const Size place = static_cast<Size>(keys[i]);
    const int64 to = (int64(blockIdx.y) * k + i) * inner + blockIdx.x;
    values[to] = x[int64(place) * inner];
    places[to] = place;
  }
}
