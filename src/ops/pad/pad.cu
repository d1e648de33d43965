// Padding of up to eight axes: a thread finds for each element of the result which element of the
// data it shows, or that it is the fill value. Bound by memory; each element is written once, and
// neighbouring threads read neighbours but at the edges.
//
// Compiled with: -DWORD=uint8 -DMODE=0
// Compiled with: -DWORD=uint16 -DMODE=1
// Compiled with: -DWORD=uint32 -DMODE=2
// Compiled with: -DWORD=uint2 -DMODE=3
#include "number.cuh"

constexpr int kMostAxes = 8;
enum : int { kConstant, kReflect, kEdge, kWrap };

/// The last axis first: sizes of the result, elements kept of the data's axis, how many are added
/// before them, and the data's steps. `first` is where the kept elements begin.
struct Padding {
  Size sizes[kMostAxes];
  int32 kept[kMostAxes];
  int32 before[kMostAxes];
  Size steps[kMostAxes];
  int64 first;
  int rank;
};

__device__ __forceinline__ int32 wrapped(int32 at, int32 period) {
  const int32 rest = at % period;
  return rest < 0 ? rest + period : rest;
}

/// Which kept element a place shows; -1: none.
__device__ __forceinline__ int32 shown(int32 at, int32 size) {
  if (at >= 0 && at < size) return at;
  if (MODE == kConstant) return -1;
  if (MODE == kEdge) return at < 0 ? 0 : size - 1;
  if (MODE == kWrap) return wrapped(at, size);
  if (size == 1) return 0;
  const int32 folded = wrapped(at, 2 * (size - 1));
  return folded < size ? folded : 2 * (size - 1) - folded;
}

/// `fill`: one element, or null for zero bits.
extern "C" __global__ void __launch_bounds__(256)
    pad(const WORD* __restrict__ x, const WORD* __restrict__ fill, WORD* __restrict__ y, Size count,
        Padding by) {
  const WORD value = fill ? *fill : WORD{};
  each_element(count, [&](Size i) {
    Size rest = i;
    int64 from = by.first;
    bool inside = true;
#pragma unroll
    for (int axis = 0; axis < kMostAxes; ++axis) {
      if (axis >= by.rank) break;
      const int32 at = shown(int32(rest % by.sizes[axis]) - by.before[axis], by.kept[axis]);
      inside = inside && at >= 0;
      from += int64(at) * by.steps[axis];
      rest /= by.sizes[axis];
    }
    y[i] = inside ? x[from] : value;
  });
}
