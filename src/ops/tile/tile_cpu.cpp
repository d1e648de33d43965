#include "ops/tile/tile.h"
#include "ops/transpose/copy_plan_cpu.h"

namespace dais {
namespace {

Verdict accepts(const KernelQuery& query) {
  if (!query.in(0).ranked() || query.in(0).shape->size() > kMaxRank / 2) return no("too many axes");
  return accepts_copy<>(query);
}

}  // namespace

namespace ops {
void register_tile_cpu(Kernels& kernels) {
  kernels.add(
      {.name = "tile/runs", .op = &Tile::op, .accepts = accepts, .prepare = copies<tile_moves>});
}
}  // namespace ops
}  // namespace dais
