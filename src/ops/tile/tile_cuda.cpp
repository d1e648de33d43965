#include "ops/tile/tile.h"
#include "ops/transpose/moves_cuda.h"

namespace dais::ops {
void register_tile_cuda(Kernels& kernels) {
  kernels.add({.name = "tile/cuda",
               .op = &Tile::op,
               .accepts = accepts_copy<>,
               .prepare = device_copies<tile_moves>});
}
}  // namespace dais::ops
