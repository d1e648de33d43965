// LSTM and GRU layers in one launch: a block for each example and direction walks the steps with the
// state in shared memory. Rows of both weight matrices are joined by warps, whose lanes read
// neighbouring elements; then threads take a hidden unit each. Bound by reading the weights once for
// each step, mostly from the cache: right for layers that are narrow or see few examples.
//
// INPUT and HIDDEN are the sizes of a step and of the state; GATES is 4 for LSTM (input, output,
// forget, cell) and 3 for GRU (update, reset, hidden). LINEAR: the reset gate scales the product with
// the state, not the state.
//
// Compiled with: -DELEMENT=float -DINPUT=64 -DHIDDEN=128 -DGATES=4 -DLINEAR=0
// Compiled with: -DELEMENT=float -DINPUT=16 -DHIDDEN=16 -DGATES=3 -DLINEAR=0
// Compiled with: -DELEMENT=f16 -DINPUT=40 -DHIDDEN=33 -DGATES=3 -DLINEAR=1
#include "reduce.cuh"

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

/// A row of weights times a vector in shared memory, in every lane.
__device__ __forceinline__ float row_times(const ELEMENT* row, const float* vector, int size) {
  float sum = 0;
  for (int i = threadIdx.x % 32; i < size; i += 32) sum += to_float(row[i]) * vector[i];
  return warp_join(sum, Plus());
}

/// 256 threads; grid (examples, directions). x [steps, examples, INPUT], w [directions,
/// GATES * HIDDEN, INPUT], r likewise by HIDDEN, b [directions, 2 * GATES * HIDDEN]; y [steps,
/// directions, examples, HIDDEN], the rest [directions, examples, HIDDEN]. b, the first states and
/// all outputs may be null. `backwards`: the first direction goes from the end.
// Without a number of blocks, ptxas spills for sm_100 to fit more of them.
extern "C" __global__ void __launch_bounds__(256, 1)
    recurrent(const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ w,
              const ELEMENT* __restrict__ r, const ELEMENT* __restrict__ b,
              const ELEMENT* __restrict__ first_h, const ELEMENT* __restrict__ first_c,
              ELEMENT* __restrict__ y, ELEMENT* __restrict__ last_h, ELEMENT* __restrict__ last_c,
              int steps, int backwards) {
  constexpr int kRows = GATES * HIDDEN;
  __shared__ float in[INPUT], h[HIDDEN], c[HIDDEN], of_x[kRows], of_h[kRows];
  const int warp = threadIdx.x / 32, warps = blockDim.x / 32, lane = threadIdx.x % 32;
  const int example = blockIdx.x, examples = gridDim.x, direction = blockIdx.y;
  const int state = (direction * examples + example) * HIDDEN;
  const bool reversed = direction == 1 || backwards;
  w += int64(direction) * kRows * INPUT;
  r += int64(direction) * kRows * HIDDEN;
  if (b) b += direction * 2 * kRows;
  for (int j = threadIdx.x; j < HIDDEN; j += blockDim.x) {
    h[j] = first_h ? to_float(first_h[state + j]) : 0.0f;
    c[j] = first_c ? to_float(first_c[state + j]) : 0.0f;
  }
  for (int step = 0; step < steps; ++step) {
    const int t = reversed ? steps - 1 - step : step;
    const ELEMENT* from = x + (int64(t) * examples + example) * INPUT;
    for (int i = threadIdx.x; i < INPUT; i += blockDim.x) in[i] = to_float(from[i]);
    __syncthreads();
    for (int row = warp; row < kRows; row += warps) {
      const float one = row_times(w + int64(row) * INPUT, in, INPUT);
      const bool later = GATES == 3 && !LINEAR && row >= 2 * HIDDEN;
      const float other = later ? 0.0f : row_times(r + int64(row) * HIDDEN, h, HIDDEN);
      if (lane != 0) continue;
      of_x[row] = one + (b ? to_float(b[row]) : 0.0f);
      of_h[row] = other + (b ? to_float(b[kRows + row]) : 0.0f);
    }
    __syncthreads();
#if GATES == 4
    for (int j = threadIdx.x; j < HIDDEN; j += blockDim.x) {
      const auto gate = [&](int g) { return of_x[g * HIDDEN + j] + of_h[g * HIDDEN + j]; };
      c[j] = sigmoid(gate(2)) * c[j] + sigmoid(gate(0)) * tanhf(gate(3));
      h[j] = sigmoid(gate(1)) * tanhf(c[j]);
    }
#else
#if !LINEAR
    for (int j = threadIdx.x; j < HIDDEN; j += blockDim.x)
      c[j] = sigmoid(of_x[HIDDEN + j] + of_h[HIDDEN + j]) * h[j];
    __syncthreads();
    for (int j = warp; j < HIDDEN; j += warps) {
      const float sum = row_times(r + int64(2 * HIDDEN + j) * HIDDEN, c, HIDDEN);
      if (lane == 0) of_h[2 * HIDDEN + j] += sum;
    }
    __syncthreads();
#endif
    for (int j = threadIdx.x; j < HIDDEN; j += blockDim.x) {
      const float update = sigmoid(of_x[j] + of_h[j]);
      const float scale = LINEAR ? sigmoid(of_x[HIDDEN + j] + of_h[HIDDEN + j]) : 1.0f;
      const float fresh = tanhf(of_x[2 * HIDDEN + j] + scale * of_h[2 * HIDDEN + j]);
      h[j] = (1.0f - update) * fresh + update * h[j];
    }
#endif
    __syncthreads();
    if (y) {
      ELEMENT* to = y + ((int64(t) * gridDim.y + direction) * examples + example) * HIDDEN;
      for (int j = threadIdx.x; j < HIDDEN; j += blockDim.x) to[j] = from_float<ELEMENT>(h[j]);
    }
  }
  __syncthreads();
  for (int j = threadIdx.x; j < HIDDEN; j += blockDim.x) {
    if (last_h) last_h[state + j] = from_float<ELEMENT>(h[j]);
    if (last_c) last_c[state + j] = from_float<ELEMENT>(c[j]);
  }
}
