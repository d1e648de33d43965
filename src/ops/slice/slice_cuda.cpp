#include "ops/slice/slice.h"
#include "ops/transpose/moves_cuda.h"

namespace dais::ops {
void register_slice_cuda(Kernels& kernels) {
  kernels.add({.name = "slice/cuda",
               .op = &Slice::op,
               .accepts = accepts_copy<1, 3, 4>,
               .prepare = device_copies<slice_moves>});
}
}  // namespace dais::ops
