#include "backends/cpu/turn.h"

namespace dais::DAIS_ISA {

/// Rows [first, last) of from[rows, columns] become columns of `to`. A cache line of `to` is
/// written at once: it may be out of the cache when the next one of its row comes.
void turn_rows(const float* from, int64_t rows, int64_t columns, int64_t first, int64_t last,
               float* to) {
  int64_t r = first;
#if DAIS_ISA_LEVEL >= 1
  constexpr int64_t kLine = 16;
  for (; r + kLine <= last; r += kLine) {
    int64_t c = 0;
    for (; c + 8 <= columns; c += 8)
      for (int64_t half = 0; half < kLine; half += 8)
        turn_8x8(from + (r + half) * columns + c, columns, to + c * rows + r + half, rows);
    for (; c < columns; ++c)
      for (int64_t i = r; i < r + kLine; ++i) to[c * rows + i] = from[i * columns + c];
  }
#endif
  for (; r < last; ++r)
    for (int64_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
}

}  // namespace dais::DAIS_ISA
