// The upper or lower triangles of matrices, with zeros beside them. Bound by memory.
//
// Compiled with: -DWORD=uint32
// Compiled with: -DWORD=uint4
#include "number.cuh"

/// What is `distance` (null: 0) or more above the diagonal stays (`upper`), or what is that or less
/// above it.
extern "C" __global__ void __launch_bounds__(256)
    trilu(const WORD* __restrict__ x, WORD* __restrict__ y, Size count, Size rows, Size columns,
          const int64* __restrict__ distance, int upper) {
  const int64 k = distance ? *distance : 0;
  each_element(count, [&](Size i) {
    const int64 above = int64(i % columns) - int64(i / columns % rows);
    y[i] = (upper ? above >= k : above <= k) ? x[i] : WORD{};
  });
}
