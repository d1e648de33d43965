#pragma once

#include <cstdint>
#include <type_traits>

namespace dais {

/// The type sums of T are kept in: double for floats, wrapping unsigned for integers.
template <typename T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;

/// Sizes and element strides of c[rows, columns] = a[rows, depth] * b[depth, columns].
/// `c` is dense; `b` has unit stride along columns.
struct GemmShape {
  int64_t rows = 0, columns = 0, depth = 0;
  int64_t a_row = 0, a_column = 1;
  int64_t b_row = 0;
};

/// The one plain product loop behind every reference that multiplies matrices. Runs on the compute
/// pool; the result does not depend on how many threads there are. T: float, double or int64_t.
template <typename T>
void gemm_loop(const GemmShape& shape, const T* a, const T* b, Accumulator<T>* c);

/// to[columns, rows] = from[rows, columns] transposed.
template <typename T>
void transpose_loop(int64_t rows, int64_t columns, const T* from, T* to) {
  constexpr int64_t tile = 32;
  for (int64_t r0 = 0; r0 < rows; r0 += tile)
    for (int64_t c0 = 0; c0 < columns; c0 += tile)
      for (int64_t r = r0; r < rows && r < r0 + tile; ++r)
        for (int64_t c = c0; c < columns && c < c0 + tile; ++c)
          to[c * rows + r] = from[r * columns + c];
}

}  // namespace dais
