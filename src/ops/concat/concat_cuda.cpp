#include "ops/concat/concat.h"
#include "ops/transpose/moves_cuda.h"

namespace dais::ops {
void register_concat_cuda(Kernels& kernels) {
  kernels.add({.name = "concat/cuda",
               .op = &Concat::op,
               .accepts = accepts_copy<>,
               .prepare = device_copies<concat_moves>});
}
}  // namespace dais::ops
