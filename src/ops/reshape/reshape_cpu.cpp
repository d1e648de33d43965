#include "ops/reshape/reshape.h"
#include "ops/transpose/copy_plan_cpu.h"
#include "ops/transpose/strided_copy.h"

namespace dais {
namespace {

CopyList plan_expand(const Node& node, const Sizes& sizes, Isa isa) {
  const Shape& to = sizes.out[0];
  return {{{.plan = CopyPlan(to, dtype_size(node.in[0]->type.dtype),
                             broadcast_strides(sizes.in[0], to), dense_steps(to), isa)}}};
}

CopyList plan_same(const Node& node, const Sizes& sizes, Isa isa) {
  const Shape all{sizes.in[0].elements()};
  if (!(all == Shape{sizes.out[0].elements()})) return std::nullopt;
  return {{{.plan = CopyPlan(all, dtype_size(node.in[0]->type.dtype), {1}, {1}, isa)}}};
}

}  // namespace

namespace ops {
void register_reshape_cpu(Kernels& kernels) {
  kernels.add({.name = "expand/runs",
               .op = &Expand::op,
               .accepts = accepts_copy<>,
               .prepare = copies<plan_expand>});
  // Where the result cannot be a view: sizes that only running tells.
  for (const Op* op : {&Reshape::op, &Flatten::op, &Squeeze::op, &Unsqueeze::op})
    kernels.add({.name = "reshape/copy",
                 .op = op,
                 .accepts = accepts_copy<>,
                 .prepare = copies<plan_same>});
}
}  // namespace ops
}  // namespace dais
