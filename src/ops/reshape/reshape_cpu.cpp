#include "ops/reshape/reshape.h"
#include "ops/transpose/copy_plan_cpu.h"

namespace dais {
namespace {

Moves same_moves(const Node&, Shapes in, Shapes out) {
  const Shape all{in[0].elements()};
  if (!(all == Shape{out[0].elements()})) return std::nullopt;
  return std::vector<Move>{{.space = all, .from_steps = {1}, .to_steps = {1}}};
}

}  // namespace

namespace ops {
void register_reshape_cpu(Kernels& kernels) {
  kernels.add({.name = "expand/runs",
               .op = &Expand::op,
               .accepts = accepts_copy<>,
               .prepare = copies<expand_moves>});
  // Where the result cannot be a view: sizes that only running tells.
  for (const Op* op : {&Reshape::op, &Flatten::op, &Squeeze::op, &Unsqueeze::op})
    kernels.add({.name = "reshape/copy",
                 .op = op,
                 .accepts = accepts_copy<>,
                 .prepare = copies<same_moves>});
}
}  // namespace ops
}  // namespace dais
