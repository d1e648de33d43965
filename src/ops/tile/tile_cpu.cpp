#include "ops/tile/tile.h"
#include "ops/transpose/copy_plan_cpu.h"
#include "ops/transpose/strided_copy.h"

namespace dais {
namespace {

/// Every axis becomes two: how often, and how long.
CopyList plan(const Node& node, const Sizes& sizes, Isa isa) {
  const Shape &from = sizes.in[0], &to = sizes.out[0];
  if (to.elements() == 0) return std::vector<PlannedCopy>{};
  const Shape strides = strides_of(from);
  Shape space;
  Strides steps{};
  for (size_t axis = 0; axis < from.rank(); ++axis) {
    space.push_back(to[axis] / from[axis]);
    steps[space.rank()] = strides[axis];
    space.push_back(from[axis]);
  }
  return {{{.plan = CopyPlan(space, dtype_size(node.in[0]->type.dtype), steps, dense_steps(space),
                             isa)}}};
}

Verdict accepts(const KernelQuery& query) {
  if (!query.in(0).ranked() || query.in(0).shape->size() > kMaxRank / 2) return no("too many axes");
  return accepts_copy<>(query);
}

}  // namespace

namespace ops {
void register_tile_cpu(Kernels& kernels) {
  kernels.add({.name = "tile/runs", .op = &Tile::op, .accepts = accepts, .prepare = copies<plan>});
}
}  // namespace ops
}  // namespace dais
