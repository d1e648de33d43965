// Reductions of a tensor seen as [outer, size, inner]. Bound by memory: each element is read once.
//
// reduce_rows (inner is 1): a block for each piece of a row, neighbouring threads on neighbouring
// elements, 16 bytes each where rows allow. Few long rows are split into pieces, whose results a
// second launch joins. reduce_columns: a thread for each column, so that a warp reads neighbouring
// columns of one slice.
//
// Compiled with: -DIN=float -DOUT=float -DREDUCE=Sum
// Compiled with: -DIN=f16 -DOUT=f16 -DREDUCE=Mean
// Compiled with: -DIN=bf16 -DOUT=float -DREDUCE=SumSquare
// Compiled with: -DIN=float -DOUT=float -DREDUCE=Max
// Compiled with: -DIN=float -DOUT=float -DREDUCE=Prod
#include "pack.cuh"
#include "reduce.cuh"

// What is done to an element before it is joined, and to the whole at the end.
struct Sum : Plus {
  static __device__ __forceinline__ float before(float x) { return x; }
  static __device__ __forceinline__ float after(float x, float) { return x; }
};
struct Mean : Sum {
  static __device__ __forceinline__ float after(float x, float count) { return x / count; }
};
struct L1 : Sum {
  static __device__ __forceinline__ float before(float x) { return fabsf(x); }
};
struct SumSquare : Sum {
  static __device__ __forceinline__ float before(float x) { return x * x; }
};
struct L2 : SumSquare {
  static __device__ __forceinline__ float after(float x, float) { return sqrtf(x); }
};
struct LogSum : Sum {
  static __device__ __forceinline__ float after(float x, float) { return logf(x); }
};
struct Prod : Times {
  static __device__ __forceinline__ float before(float x) { return x; }
  static __device__ __forceinline__ float after(float x, float) { return x; }
};
struct Max : Greater {
  static __device__ __forceinline__ float before(float x) { return x; }
  static __device__ __forceinline__ float after(float x, float) { return x; }
};
struct Min : Less {
  static __device__ __forceinline__ float before(float x) { return x; }
  static __device__ __forceinline__ float after(float x, float) { return x; }
};

template <bool prepared>
__device__ __forceinline__ float prepare(float x) {
  return prepared ? x : REDUCE::before(x);
}

/// Elements [from, to) of a row that begins at a multiple of 16 bytes when `wide`.
template <typename T, bool prepared>
__device__ __forceinline__ float join_range(const T* row, Size from, Size to, bool wide) {
  constexpr int kWidth = Widest<T>::count;
  const REDUCE join;
  float total = REDUCE::start();
  if (wide) {
    for (Size i = from + threadIdx.x * kWidth; i < to; i += blockDim.x * kWidth) {
      const auto pack = load_pack<kWidth>(row + i);
      for (int k = 0; k < kWidth; ++k) total = join(total, prepare<prepared>(to_float(pack.at[k])));
    }
  } else {
    for (Size i = from + threadIdx.x; i < to; i += blockDim.x)
      total = join(total, prepare<prepared>(to_float(row[i])));
  }
  return block_join(total, join);
}

/// x [rows, size] to y [rows, pieces]: grid (pieces, rows). With more than one piece y is float and
/// unfinished; `piece` and size are multiples of the pack where x is read in packs.
extern "C" __global__ void __launch_bounds__(256)
    reduce_rows(const IN* __restrict__ x, void* __restrict__ y, Size size, Size piece) {
  const Size row = blockIdx.y, from = blockIdx.x * piece;
  const bool wide = size % Widest<IN>::count == 0 && piece % Widest<IN>::count == 0;
  const float total =
      join_range<IN, false>(x + int64(row) * size, from, min(from + piece, size), wide);
  if (threadIdx.x != 0) return;
  if (gridDim.x > 1) {
    static_cast<float*>(y)[row * gridDim.x + blockIdx.x] = total;
  } else {
    static_cast<OUT*>(y)[row] = from_float<OUT>(REDUCE::after(total, static_cast<float>(size)));
  }
}

/// Joins the pieces of reduce_rows: grid (1, rows).
extern "C" __global__ void __launch_bounds__(256)
    join_pieces(const float* __restrict__ x, OUT* __restrict__ y, Size pieces, Size size) {
  const Size row = blockIdx.y;
  const float total = join_range<float, true>(x + int64(row) * pieces, 0, pieces, false);
  if (threadIdx.x == 0)
    y[row] = from_float<OUT>(REDUCE::after(total, static_cast<float>(size)));
}

/// x [outer, size, inner] to y [outer, inner]: a thread for each element of y.
extern "C" __global__ void __launch_bounds__(256)
    reduce_columns(const IN* __restrict__ x, OUT* __restrict__ y, Size outer, Size size,
                   Size inner) {
  const REDUCE join;
  each_element(outer * inner, [&](Size i) {
    const IN* column = x + i / inner * size * inner + i % inner;
    float total = REDUCE::start();
    for (Size k = 0; k < size; ++k)
      total = join(total, prepare<false>(to_float(column[k * inner])));
    y[i] = from_float<OUT>(REDUCE::after(total, static_cast<float>(size)));
  });
}
