#include "ops/conv/conv_loops.h"

namespace dais {

#define DAIS_CONV_LOOPS(isa)                                                \
  namespace isa {                                                           \
  void transpose(const float*, int64_t, int64_t, int64_t, float*, int64_t); \
  static constexpr ConvLoops loops{transpose};                              \
  }
DAIS_CONV_LOOPS(plain)
DAIS_CONV_LOOPS(avx2)
DAIS_CONV_LOOPS(avx512)
#undef DAIS_CONV_LOOPS

const ConvLoops& conv_loops(Isa isa) {
  if (isa >= Isa::avx512) return avx512::loops;
  return isa == Isa::avx2 ? avx2::loops : plain::loops;
}

}  // namespace dais
