// Non-maximum suppression of one class of one batch entry by a block: the best remaining box is
// chosen, and those that overlap it more than the threshold leave, until none remains or enough are
// chosen. Bound by a pass over the boxes for each one chosen; the remaining scores lie in shared
// memory, so that only boxes are read again, by neighbouring threads side by side.
//
// Compiled with: -DCENTER=0
// Compiled with: -DCENTER=1
#include "order.cuh"

struct Box {
  float low_y, low_x, high_y, high_x;
};

__device__ __forceinline__ Box box_of(const float4& b) {
  if (CENTER) return {b.y - b.w / 2, b.x - b.z / 2, b.y + b.w / 2, b.x + b.z / 2};
  return {fminf(b.x, b.z), fminf(b.y, b.w), fmaxf(b.x, b.z), fmaxf(b.y, b.w)};
}

__device__ __forceinline__ float area(const Box& b) {
  return (b.high_y - b.low_y) * (b.high_x - b.low_x);
}

__device__ __forceinline__ float overlap(const Box& a, const Box& b) {
  const float y = fminf(a.high_y, b.high_y) - fmaxf(a.low_y, b.low_y);
  const float x = fminf(a.high_x, b.high_x) - fmaxf(a.low_x, b.low_x);
  if (!(y > 0) || !(x > 0) || !(area(a) > 0) || !(area(b) > 0)) return 0;
  return y * x / (area(a) + area(b) - y * x);
}

/// The greater score wins, of equal ones the earlier box.
__device__ __forceinline__ void take_better(uint32& score, int& box, uint32 other, int other_box) {
  if (other > score || (other == score && other_box < box)) {
    score = other;
    box = other_box;
  }
}

/// boxes [batch, count, 4], scores [batch, classes, count]: grid (classes, batch); dynamic shared
/// memory for `count` words. chosen [batch, classes, most] gets the boxes in order, and -1 behind
/// them. Thresholds may be null: overlap counts from 0 on, and all scores do.
extern "C" __global__ void __launch_bounds__(256)
    nms(const float4* __restrict__ boxes, const float* __restrict__ scores,
        const float* __restrict__ overlap_threshold, const float* __restrict__ score_threshold,
        int* __restrict__ chosen, int count, int most) {
  extern __shared__ uint32 remaining[];
  __shared__ uint32 warp_score[8];
  __shared__ int warp_box[8];
  constexpr uint32 kGone = 0;
  const float limit = overlap_threshold ? *overlap_threshold : 0.0f;
  const int64 row = int64(blockIdx.y) * gridDim.x + blockIdx.x;
  boxes += int64(blockIdx.y) * count;
  scores += row * count;
  chosen += row * most;
  for (int i = threadIdx.x; i < count; i += blockDim.x)
    remaining[i] = score_threshold && !(scores[i] > *score_threshold) ? kGone : ordered(scores[i]);
  __syncthreads();
  int done = 0;
  for (; done < most; ++done) {
    uint32 score = kGone;
    int box = count;
    for (int i = threadIdx.x; i < count; i += blockDim.x) take_better(score, box, remaining[i], i);
    for (int step = 16; step > 0; step /= 2) {
      const uint32 other = __shfl_xor_sync(0xffffffffu, score, step);
      const int other_box = __shfl_xor_sync(0xffffffffu, box, step);
      take_better(score, box, other, other_box);
    }
    if (threadIdx.x % 32 == 0) {
      warp_score[threadIdx.x / 32] = score;
      warp_box[threadIdx.x / 32] = box;
    }
    __syncthreads();
    for (int w = 0; w < blockDim.x / 32; ++w) take_better(score, box, warp_score[w], warp_box[w]);
    if (score == kGone) break;
    if (threadIdx.x == 0) chosen[done] = box;
    const Box best = box_of(boxes[box]);
    for (int i = threadIdx.x; i < count; i += blockDim.x)
      if (i == box || (remaining[i] != kGone && overlap(best, box_of(boxes[i])) > limit))
        remaining[i] = kGone;
    __syncthreads();
  }
  for (int i = done + threadIdx.x; i < most; i += blockDim.x) chosen[i] = -1;
}
