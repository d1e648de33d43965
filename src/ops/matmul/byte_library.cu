// What surrounds a product of signed bytes by cuBLASLt. Bound by memory.
//
// sign_rows: A's bytes less 128 where they have no sign, and the sums of its rows; a warp for each
// row, a word of four bytes for each thread at a time.
// finish_bytes: zero points and scales; four neighbouring columns for each thread.
//
// Rows count on over all batches, of which each has `lines`.
//
// Compiled with: -DA_TYPE=uint8 -DB_TYPE=int8 -DY_TYPE=int32 -DSTORE=0
// Compiled with: -DA_TYPE=int8 -DB_TYPE=uint8 -DY_TYPE=uint8 -DSTORE=1
// Compiled with: -DA_TYPE=uint8 -DB_TYPE=uint8 -DY_TYPE=float -DSTORE=2
#include "bytes.cuh"
#include "pack.cuh"

constexpr int32 kLessA = A_TYPE(-1) < A_TYPE(0) ? 0 : 128;
constexpr int32 kLessB = B_TYPE(-1) < B_TYPE(0) ? 0 : 128;
constexpr uint32 kSigns = 0x80808080u;

/// `to` and `sums` may be null; rows have `words` words.
extern "C" __global__ void __launch_bounds__(256)
    sign_rows(const uint32* __restrict__ from, uint32* __restrict__ to, int32* __restrict__ sums,
              Size rows, Size words) {
  const Size row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  int32 sum = 0;
  for (Size word = lane; word < words; word += 32) {
    const Size at = row * words + word;
    const uint32 bytes = kLessA ? from[at] ^ kSigns : from[at];
    if (to) to[at] = bytes;
    sum = dot<int8, uint8>(bytes, kOnes, sum);
  }
  if (!sums) return;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (lane == 0) sums[row] = sum;
}

/// `of_a` may be null where B has no zero points and signs; `of_b` is always there.
extern "C" __global__ void __launch_bounds__(256)
    finish_bytes(Finish f, const int32* __restrict__ sums, const int32* __restrict__ of_a,
                 const int32* __restrict__ of_b, Y_TYPE* __restrict__ y, Size rows, Size columns,
                 Size lines, int32 depth) {
  const Size across = columns / 4;
  each_element(rows * across, [&](Size i) {
    const Size row = i / across, column = i % across * 4;
    const int32 line = static_cast<int32>(row % lines), sum_of_a = of_a ? of_a[row] : 0;
    const auto four = load_pack<4>(sums + row * columns + column);
    const auto sums_of_b = load_pack<4>(of_b + column);
    Pack<Y_TYPE, 4> out;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int32 c = static_cast<int32>(column) + k;
      const int32 sum =
          centered(depth, f, four.at[k], sum_of_a, sums_of_b.at[k], line, c, kLessA, kLessB);
      out.at[k] = finished(f, sum, line, c);
    }
    store_pack(y + row * columns + column, out);
  });
}
