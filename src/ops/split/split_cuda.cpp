#include "ops/split/split.h"
#include "ops/transpose/moves_cuda.h"

namespace dais::ops {
void register_split_cuda(Kernels& kernels) {
  kernels.add({.name = "split/cuda",
               .op = &Split::op,
               .accepts = accepts_copy<1>,
               .prepare = device_copies<split_moves>});
}
}  // namespace dais::ops
