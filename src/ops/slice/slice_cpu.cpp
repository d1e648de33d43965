#include "ops/slice/slice.h"
#include "ops/transpose/copy_plan_cpu.h"

namespace dais::ops {
void register_slice_cpu(Kernels& kernels) {
  kernels.add({.name = "slice/runs",
               .op = &Slice::op,
               .accepts = accepts_copy<1, 3, 4>,
               .prepare = copies<slice_moves>});
}
}  // namespace dais::ops
