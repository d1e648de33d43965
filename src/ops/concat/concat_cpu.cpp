#include "ops/concat/concat.h"
#include "ops/transpose/copy_plan_cpu.h"

namespace dais {
namespace {

CopyList plan(const Node& node, const Sizes& sizes, Isa isa) {
  const size_t axis = normalize_axis(node.as<Concat>()->axis, sizes.out[0].rank());
  const AxisSplit whole = split_axis(sizes.out[0], axis);
  std::vector<PlannedCopy> out;
  int64_t at = 0;
  for (size_t i = 0; i < sizes.in.size(); ++i) {
    const int64_t run = sizes.in[i][axis] * whole.inner;
    const CopyPlan copy(Shape{whole.outer, run}, dtype_size(node.in[0]->type.dtype), {run, 1},
                        {whole.size * whole.inner, 1}, isa);
    if (run > 0) out.push_back({.in = i, .to = at, .plan = copy});
    at += run;
  }
  return out;
}

}  // namespace

namespace ops {
void register_concat_cpu(Kernels& kernels) {
  kernels.add({.name = "concat/runs",
               .op = &Concat::op,
               .accepts = accepts_copy<>,
               .prepare = copies<plan>});
}
}  // namespace ops
}  // namespace dais
