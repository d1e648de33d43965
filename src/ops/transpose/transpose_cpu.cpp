#include "ops/transpose/copy_plan_cpu.h"
#include "ops/transpose/transpose.h"

namespace dais::ops {
void register_transpose_cpu(Kernels& kernels) {
  kernels.add({.name = "transpose/blocks",
               .op = &Transpose::op,
               .accepts = accepts_copy<>,
               .prepare = copies<transpose_moves>});
}
}  // namespace dais::ops
