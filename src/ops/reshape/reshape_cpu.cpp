#include "ops/reshape/reshape.h"
#include "ops/transpose/copy_plan_cpu.h"

namespace dais::ops {
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
}  // namespace dais::ops
