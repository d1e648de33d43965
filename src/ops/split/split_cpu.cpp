#include "ops/split/split.h"
#include "ops/transpose/copy_plan_cpu.h"

namespace dais {
namespace {

/// The pieces' sizes are those of the outputs, whether they came from a constant or not: what the
/// run finds different from inference is refused before a kernel is bound.
CopyList plan(const Node& node, const Sizes& sizes, Isa isa) {
  const size_t axis = normalize_axis(node.as<Split>()->axis, sizes.in[0].rank());
  const AxisSplit whole = split_axis(sizes.in[0], axis);
  std::vector<PlannedCopy> out;
  int64_t at = 0;
  for (size_t i = 0; i < sizes.out.size(); ++i) {
    const int64_t run = sizes.out[i][axis] * whole.inner;
    const CopyPlan copy(Shape{whole.outer, run}, dtype_size(node.in[0]->type.dtype),
                        {whole.size * whole.inner, 1}, {run, 1}, isa);
    if (run > 0) out.push_back({.out = i, .from = at, .plan = copy});
    at += run;
  }
  return out;
}

}  // namespace

namespace ops {
void register_split_cpu(Kernels& kernels) {
  kernels.add({.name = "split/runs",
               .op = &Split::op,
               .accepts = accepts_copy<1>,
               .prepare = copies<plan>});
}
}  // namespace ops
}  // namespace dais
