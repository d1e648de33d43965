#include "ops/reduce/reduce_loops.h"

namespace dais {

#define DAIS_REDUCE_LOOPS(isa)         \
  namespace isa {                      \
  extern const ReduceLoops fold_table; \
  }
DAIS_REDUCE_LOOPS(plain)
DAIS_REDUCE_LOOPS(avx2)
DAIS_REDUCE_LOOPS(avx512)
#undef DAIS_REDUCE_LOOPS

const ReduceLoops& reduce_loops(Isa isa) {
  if (isa >= Isa::avx512) return avx512::fold_table;
  return isa == Isa::avx2 ? avx2::fold_table : plain::fold_table;
}

}  // namespace dais
