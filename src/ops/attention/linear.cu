// Attention through a state of fixed size, token by token. Columns of the state are independent of each
// other: a block takes 32 of one head, whose rows its eight warps share out and keep in registers.
// What runs over rows is summed by each warp, then over the warps in their order. Bound by the latency
// of the tokens, one after the other. ROWS is how many rows of the state a warp has.
//
// Compiled with: -DELEMENT=float -DSTATE=float -DROWS=8
// Compiled with: -DELEMENT=f16 -DSTATE=float -DROWS=16
// Compiled with: -DELEMENT=bf16 -DSTATE=bf16 -DROWS=32
#include "number.cuh"

constexpr int kWarps = 8;

/// Heads, sizes and how many values the gates have for a token.
struct LinearSizes {
  Size length, q_heads, kv_heads, dk, dv;
  Size decay_width, beta_width;
  float scale;
};

/// Where a gate's values for a head lie: one for all, one for each head, or one for each row.
__device__ __forceinline__ Size gate_of(Size width, Size token, Size head, const LinearSizes& s) {
  return token * width + (width == 1 ? 0 : width == s.kv_heads ? head : head * s.dk);
}

/// The sum over the warps of what each lane has; every warp gets it.
__device__ __forceinline__ float over_warps(float (*parts)[32], float own) {
  __syncthreads();
  parts[threadIdx.y][threadIdx.x] = own;
  __syncthreads();
  float total = 0;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) total += parts[warp][threadIdx.x];
  return total;
}

/// Grid (columns / 32, examples times heads), blocks of 32 times 8. past, decay, beta, erase and
/// present may be null.
extern "C" __global__ void __launch_bounds__(256, 1)
    linear_attention(const ELEMENT* __restrict__ q, const ELEMENT* __restrict__ k,
                     const ELEMENT* __restrict__ v, const STATE* __restrict__ past,
                     const ELEMENT* __restrict__ decay, const ELEMENT* __restrict__ beta,
                     const ELEMENT* __restrict__ erase, ELEMENT* __restrict__ y,
                     STATE* __restrict__ present, LinearSizes s) {
  __shared__ float parts[kWarps][32];
  const Size head = blockIdx.y % s.kv_heads, example = blockIdx.y / s.kv_heads;
  const Size column = blockIdx.x * 32 + threadIdx.x, first = threadIdx.y * ROWS;
  const Size group = s.q_heads / s.kv_heads, held = blockIdx.y * s.dk * s.dv + column;
  const bool inside = column < s.dv, by_row = s.decay_width > s.kv_heads;
  float state[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
    state[r] = past && inside && first + r < s.dk ? to_float(past[held + (first + r) * s.dv]) : 0.0f;
  for (Size t = 0; t < s.length; ++t) {
    const Size token = example * s.length + t;
    const Size fading = gate_of(s.decay_width, token, head, s) + (by_row ? first : 0);
    const Size key = (token * s.kv_heads + head) * s.dk + first;
    float recalled = 0;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      if (first + r >= s.dk) continue;
      if (decay) state[r] *= expf(to_float(decay[fading + (by_row ? r : 0)]));
      const float strength = erase ? to_float(erase[key + r]) : 1.0f;
      recalled += to_float(k[key + r]) * strength * state[r];
    }
    float value = inside ? to_float(v[(token * s.kv_heads + head) * s.dv + column]) : 0.0f;
    if (beta)
      value = to_float(beta[gate_of(s.beta_width, token, head, s)]) *
              (value - over_warps(parts, recalled));
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
      if (first + r < s.dk) state[r] += to_float(k[key + r]) * value;
    for (Size h = head * group; h < (head + 1) * group; ++h) {
      const Size query = (token * s.q_heads + h) * s.dk + first;
      float sum = 0;
#pragma unroll
      for (int r = 0; r < ROWS; ++r)
        if (first + r < s.dk) sum += to_float(q[query + r]) * state[r];
      sum = over_warps(parts, sum);
      if (inside && threadIdx.y == 0)
        y[(token * s.q_heads + h) * s.dv + column] = from_float<ELEMENT>(s.scale * sum);
    }
  }
  if (!present || !inside) return;
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
    if (first + r < s.dk) present[held + (first + r) * s.dv] = from_float<STATE>(state[r]);
}
