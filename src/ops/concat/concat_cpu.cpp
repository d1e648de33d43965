#include "ops/concat/concat.h"
#include "ops/transpose/copy_plan_cpu.h"

namespace dais::ops {
void register_concat_cpu(Kernels& kernels) {
  kernels.add({.name = "concat/runs",
               .op = &Concat::op,
               .accepts = accepts_copy<>,
               .prepare = copies<concat_moves>});
}
}  // namespace dais::ops
