#include "backends/cpu/turn_matrix.h"

#include <algorithm>

#include "base/threads.h"

namespace dais {

#define DAIS_TURN_LEVEL(level)                                              \
  namespace level {                                                         \
  void turn_rows(const float*, int64_t, int64_t, int64_t, int64_t, float*); \
  }
DAIS_TURN_LEVEL(plain)
DAIS_TURN_LEVEL(avx2)
DAIS_TURN_LEVEL(avx512)
#undef DAIS_TURN_LEVEL

namespace cpu {

void turn_matrix(Isa isa, int64_t rows, int64_t columns, const float* from, float* to) {
  constexpr int64_t kRows = 16, kGrain = 1 << 14;
  const auto turn = isa == Isa::plain  ? plain::turn_rows
                    : isa == Isa::avx2 ? avx2::turn_rows
                                       : avx512::turn_rows;
  const int64_t blocks = (rows + kRows - 1) / kRows;
  parallel_for(blocks, std::max<int64_t>(1, kGrain / (kRows * std::max<int64_t>(columns, 1))),
               [&](int64_t first, int64_t last) {
                 turn(from, rows, columns, first * kRows, std::min(last * kRows, rows), to);
               });
}

}  // namespace cpu
}  // namespace dais
