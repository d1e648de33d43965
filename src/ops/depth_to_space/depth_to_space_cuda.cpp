#include "ops/depth_to_space/depth_to_space.h"
#include "ops/transpose/moves_cuda.h"

namespace dais::ops {
void register_depth_to_space_cuda(Kernels& kernels) {
  kernels.add({.name = "depth_to_space/cuda",
               .op = &DepthToSpace::op,
               .accepts = accepts_copy<>,
               .prepare = device_copies<depth_to_space_moves>});
  kernels.add({.name = "space_to_depth/cuda",
               .op = &SpaceToDepth::op,
               .accepts = accepts_copy<>,
               .prepare = device_copies<space_to_depth_moves>});
}
}  // namespace dais::ops
