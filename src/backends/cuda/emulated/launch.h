#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/emulated/block.h"
#include "backends/cuda/emulated/module.h"

namespace dais::cuda::emulated {

/// What a launch did.
struct LaunchRecord {
  std::string kernel;
  Index grid, block;
  unsigned dynamic_shared_bytes = 0;
  bool checked = false;
  Traffic traffic;  ///< of checked modules; others count nothing
  std::vector<Finding> findings;
  /// Whether some block was stopped.
  bool failed = false;
};

/// Runs all blocks, spread over the team of the calling thread. The caller has checked the sizes.
LaunchRecord run_grid(const Module& module, const std::string& name, Grid grid,
                      const Memory& memory, const Memory& pinned);

}  // namespace dais::cuda::emulated
