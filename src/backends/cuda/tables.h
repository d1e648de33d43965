#pragma once

#include "backends/cuda/api/cublaslt.h"
#include "backends/cuda/api/cudnn.h"
#include "backends/cuda/api/driver.h"
#include "backends/cuda/api/nvrtc.h"

namespace dais::cuda {

/// The libraries that a device is driven by: the system's, or others of the same shape.
struct Tables {
  Loaded<DriverApi> driver;
  Loaded<NvrtcApi> nvrtc;
  /// May be of no use: there are kernels for what they do.
  Loaded<CublasLtApi> cublaslt;
  Loaded<CudnnApi> cudnn;
  bool hardware = true;
};

/// The system's libraries, opened at the first call. Where one is missing, its report says why.
const Tables& system_tables();

/// The emulated device's.
const Tables& emulated_tables();

}  // namespace dais::cuda
