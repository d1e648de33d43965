// The negative log likelihood of targets and its gradient. Bound by memory: of the logarithms one of
// each column is read, of the gradient all are written, by neighbouring threads side by side. Sums
// are taken in pieces, and the pieces by one block, so that their order is fixed.
//
// Compiled with: -DELEMENT=float -DTARGET=int64
// Compiled with: -DELEMENT=f16 -DTARGET=int32
#include "fault.cuh"
#include "reduce.cuh"

/// x is [outer, classes, cells], targets are [outer, cells]. Weights may be null; so may `ignored`
/// count for nothing.
struct Targets {
  const TARGET* at;
  const ELEMENT* weights;
  FaultRecord* fault;
  int64 ignored;
  Size count, classes, cells;
  int ignores, step;
};

/// A target's class; -1: it does not count.
__device__ __forceinline__ int64 class_of(const Targets& t, Size i) {
  const int64 target = t.at[i];
  if (t.ignores && target == t.ignored) return -1;
  if (target >= 0 && target < int64(t.classes)) return target;
  report_fault(t.fault, 1, t.step, target);
  return -1;
}
__device__ __forceinline__ float weight_of(const Targets& t, int64 kind) {
  return t.weights ? to_float(t.weights[kind]) : 1.0f;
}
/// Minus the logarithm of target i's class.
__device__ __forceinline__ float loss_of(const Targets& t, const ELEMENT* x, Size i, int64 kind) {
  return -to_float(x[(int64(i / t.cells) * t.classes + kind) * t.cells + i % t.cells]);
}

extern "C" __global__ void __launch_bounds__(256)
    loss_each(Targets t, const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y) {
  each_element(t.count, [&](Size i) {
    const int64 kind = class_of(t, i);
    y[i] = from_float<ELEMENT>(kind < 0 ? 0.0f : loss_of(t, x, i, kind) * weight_of(t, kind));
  });
}

/// The loss and the weight of a piece of the targets by a block. x may be null: only the weight.
extern "C" __global__ void __launch_bounds__(256)
    loss_pieces(Targets t, const ELEMENT* __restrict__ x, float2* __restrict__ parts, Size piece) {
  const Size first = blockIdx.x * piece;
  const Size end = first + piece < t.count ? first + piece : t.count;
  float loss = 0, weight = 0;
  for (Size i = first + threadIdx.x; i < end; i += blockDim.x) {
    const int64 kind = class_of(t, i);
    if (kind < 0) continue;
    const float of_class = weight_of(t, kind);
    weight += of_class;
    if (x) loss += loss_of(t, x, i, kind) * of_class;
  }
  loss = block_join(loss, Plus());
  weight = block_join(weight, Plus());
  if (threadIdx.x == 0) parts[blockIdx.x] = make_float2(loss, weight);
}

/// y (may be null): the loss, by the weight where `mean`. `weight`: that of all (may be null).
extern "C" __global__ void __launch_bounds__(256)
    loss_total(const float2* __restrict__ parts, ELEMENT* __restrict__ y,
               float* __restrict__ weight, Size pieces, int mean) {
  float2 part = make_float2(0.0f, 0.0f);
  for (Size i = threadIdx.x; i < pieces; i += blockDim.x) {
    part.x += parts[i].x;
    part.y += parts[i].y;
  }
  const float loss = block_join(part.x, Plus()), all = block_join(part.y, Plus());
  if (threadIdx.x != 0) return;
  if (y) *y = from_float<ELEMENT>(mean ? loss / all : loss);
  if (weight) *weight = all;
}

/// dy is one for each target (`each`) or one for all; `weight` may be null: the loss is no mean.
extern "C" __global__ void __launch_bounds__(256)
    loss_gradient(Targets t, const ELEMENT* __restrict__ dy, const float* __restrict__ weight,
                  ELEMENT* __restrict__ dx, int each) {
  const float scale = weight ? 1.0f / *weight : 1.0f;
  each_element(t.count * t.classes, [&](Size i) {
    const Size cell = i % t.cells, line = i / t.cells;
    const Size target = line / t.classes * t.cells + cell;
    const int64 kind = class_of(t, target);
    const bool hit = kind == int64(line % t.classes);
    dx[i] = from_float<ELEMENT>(
        hit ? -to_float(dy[each ? target : 0]) * weight_of(t, kind) * scale : 0.0f);
  });
}
