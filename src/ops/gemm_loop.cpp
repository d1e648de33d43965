#include "ops/gemm_loop.h"

#include <algorithm>

#include "base/threads.h"

namespace dais {
namespace {

// A block of sums (8 KiB) stays in the nearest cache while a panel of b streams past it.
constexpr int64_t kRows = 4, kColumns = 256;

template <typename T>
void block(const GemmShape& s, const T* a, const T* b, Accumulator<T>* c, int64_t row,
           int64_t column) {
  using Sum = Accumulator<T>;
  const int64_t rows = std::min(kRows, s.rows - row);
  const int64_t columns = std::min(kColumns, s.columns - column);
  Sum sums[kRows][kColumns] = {};
  for (int64_t k = 0; k < s.depth; ++k) {
    const T* from = b + k * s.b_row + column;
    for (int64_t r = 0; r < rows; ++r) {
      const auto factor = static_cast<Sum>(a[(row + r) * s.a_row + k * s.a_column]);
      Sum* to = sums[r];
      for (int64_t j = 0; j < columns; ++j) to[j] += factor * static_cast<Sum>(from[j]);
    }
  }
  for (int64_t r = 0; r < rows; ++r)
    std::copy(sums[r], sums[r] + columns, c + (row + r) * s.columns + column);
}

}  // namespace

template <typename T>
void gemm_loop(const GemmShape& s, const T* a, const T* b, Accumulator<T>* c) {
  const int64_t across = (s.columns + kColumns - 1) / kColumns;
  const int64_t down = (s.rows + kRows - 1) / kRows;
  const int64_t work = kRows * std::min(kColumns, s.columns) * std::max<int64_t>(s.depth, 1);
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 16) / std::max<int64_t>(work, 1));
  // Row blocks vary fastest, so that a panel of b serves all rows while it is in cache.
  parallel_for(across * down, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) block(s, a, b, c, i % down * kRows, i / down * kColumns);
  });
}

template void gemm_loop<float>(const GemmShape&, const float*, const float*, double*);
template void gemm_loop<double>(const GemmShape&, const double*, const double*, double*);
template void gemm_loop<int64_t>(const GemmShape&, const int64_t*, const int64_t*, uint64_t*);

}  // namespace dais
