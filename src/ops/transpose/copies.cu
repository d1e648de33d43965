// Elements of one box of a tensor to a box of another: concatenation, slices, splits, repetition.
// Bound by memory; WORD is an unsigned type of the element's size, or 16 bytes where runs, starts
// and steps are multiples of that. Neighbouring threads take neighbours of the innermost axis, which
// is dense in what is written.
//
// Compiled with: -DWORD=uint8
// Compiled with: -DWORD=uint16
// Compiled with: -DWORD=uint32
// Compiled with: -DWORD=uint2
// Compiled with: -DWORD=uint4
#include "number.cuh"

constexpr int kMostAxes = 8;

/// Sizes and steps in words, the last axis first; steps back and of zero occur.
struct Box {
  Size sizes[kMostAxes];
  int32 from_steps[kMostAxes];
  int32 to_steps[kMostAxes];
  int rank;
};

extern "C" __global__ void __launch_bounds__(256)
    copy_box(const WORD* __restrict__ from, WORD* __restrict__ to, Size count, Box box) {
  each_element(count, [&](Size i) {
    Size rest = i;
    int64 source = 0, target = 0;
#pragma unroll
    for (int axis = 0; axis < kMostAxes; ++axis) {
      if (axis >= box.rank) break;
      const Size at = rest % box.sizes[axis];
      source += int64(at) * box.from_steps[axis];
      target += int64(at) * box.to_steps[axis];
      rest /= box.sizes[axis];
    }
    to[target] = from[source];
  });
}
