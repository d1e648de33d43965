#include "ops/elementwise/loops.h"

namespace dais {

#define DAIS_TILE_LOOPS(isa)         \
  namespace isa {                    \
  extern const TileLoops tile_table; \
  }
DAIS_TILE_LOOPS(plain)
DAIS_TILE_LOOPS(avx2)
DAIS_TILE_LOOPS(avx512)
#undef DAIS_TILE_LOOPS

const TileLoops& tile_loops(Isa isa) {
  if (isa >= Isa::avx512) return avx512::tile_table;
  return isa == Isa::avx2 ? avx2::tile_table : plain::tile_table;
}

}  // namespace dais
