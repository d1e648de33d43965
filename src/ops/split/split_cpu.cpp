#include "ops/split/split.h"
#include "ops/transpose/copy_plan_cpu.h"

namespace dais::ops {
void register_split_cpu(Kernels& kernels) {
  kernels.add({.name = "split/runs",
               .op = &Split::op,
               .accepts = accepts_copy<1>,
               .prepare = copies<split_moves>});
}
}  // namespace dais::ops
