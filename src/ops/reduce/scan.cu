// Running sums and products of [outer, size, inner] along the middle, forwards or backwards, with or
// without the element itself. Bound by memory: each element is read and written once.
//
// scan_rows (inner is 1): a block for each row walks it in runs of as many elements as it has
// threads; a run is scanned by shuffles within warps and through shared memory between them.
// scan_columns: a thread for each column. scan_along: the same along an axis that only the device knows.
//
// Compiled with: -DELEMENT=float -DJOIN=Plus -DAXIS=int64
// Compiled with: -DELEMENT=f16 -DJOIN=Times -DAXIS=int32
#include "fault.cuh"
#include "reduce.cuh"

/// The threads' values joined up to and with each one's own; `total` of all. The block is a multiple
/// of 32 threads.
__device__ __forceinline__ float block_scan(float value, float& total) {
  __shared__ float of_warp[32];
  const JOIN join;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int step = 1; step < 32; step *= 2) {
    const float before = __shfl_up_sync(0xffffffffu, value, step);
    if (lane >= step) value = join(before, value);
  }
  if (lane == 31) of_warp[warp] = value;
  __syncthreads();
  float before = JOIN::start();
  total = JOIN::start();
  for (int w = 0; w < blockDim.x / 32; ++w) {
    if (w == warp) before = total;
    total = join(total, of_warp[w]);
  }
  __syncthreads();
  return join(before, value);
}

/// grid (outer); 32 to 1024 threads.
extern "C" __global__ void __launch_bounds__(1024)
    scan_rows(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y, Size size, int reverse,
              int exclusive) {
  const JOIN join;
  x += int64(blockIdx.x) * size;
  y += int64(blockIdx.x) * size;
  float carried = JOIN::start();
  for (Size first = 0; first < size; first += blockDim.x) {
    const Size i = first + threadIdx.x, at = reverse ? size - 1 - i : i;
    float total;
    float value = block_scan(i < size ? to_float(x[at]) : JOIN::start(), total);
    if (exclusive) {
      const float before = __shfl_up_sync(0xffffffffu, value, 1);
      __shared__ float last_of_warp[32];
      if (threadIdx.x % 32 == 31) last_of_warp[threadIdx.x / 32] = value;
      __syncthreads();
      value = threadIdx.x == 0        ? JOIN::start()
              : threadIdx.x % 32 == 0 ? last_of_warp[threadIdx.x / 32 - 1]
                                      : before;
      __syncthreads();
    }
    if (i < size) y[at] = from_float<ELEMENT>(join(carried, value));
    carried = join(carried, total);
  }
}

__device__ __forceinline__ void scan_column(const ELEMENT* x, ELEMENT* y, Size column, Size size,
                                            Size inner, int reverse, int exclusive) {
  const JOIN join;
  const Size base = column / inner * size * inner + column % inner;
  float total = JOIN::start();
  for (Size k = 0; k < size; ++k) {
    const Size at = base + (reverse ? size - 1 - k : k) * inner;
    const float next = join(total, to_float(x[at]));
    y[at] = from_float<ELEMENT>(exclusive ? total : next);
    total = next;
  }
}

extern "C" __global__ void __launch_bounds__(256)
    scan_columns(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y, Size outer, Size size,
                 Size inner, int reverse, int exclusive) {
  each_element(outer * inner, [&](Size column) {
    scan_column(x, y, column, size, inner, reverse, exclusive);
  });
}

constexpr int kMostAxes = 8;
struct Axes {
  Size sizes[kMostAxes];
  int rank;
};

extern "C" __global__ void __launch_bounds__(256)
    scan_along(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y,
               const AXIS* __restrict__ axis, Axes axes, Size elements, int reverse, int exclusive,
               FaultRecord* fault, int step) {
  const int64 along = checked_index(*axis, axes.rank, fault, step);
  if (along < 0) return;
  Size size = 1, inner = 1;
#pragma unroll
  for (int i = 0; i < kMostAxes; ++i) {
    if (i == along) size = axes.sizes[i];
    if (i > along && i < axes.rank) inner *= axes.sizes[i];
  }
  each_element(elements / size, [&](Size column) {
    scan_column(x, y, column, size, inner, reverse, exclusive);
  });
}
