#include "ops/reshape/reshape.h"
#include "ops/transpose/moves_cuda.h"

namespace dais::ops {
void register_reshape_cuda(Kernels& kernels) {
  kernels.add({.name = "expand/cuda",
               .op = &Expand::op,
               .accepts = accepts_copy<>,
               .prepare = device_copies<expand_moves>});
}
}  // namespace dais::ops
