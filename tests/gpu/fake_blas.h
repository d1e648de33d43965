#pragma once

#include "backends/cuda/api/cublaslt.h"

namespace dais::cuda {

/// cuBLASLt's entry points for tests, on the memory of the stand-in driver: plain loops over
/// matrices that lie column by column. It refuses what the library refuses, and complains to the
/// stand-in of addresses outside the device's memory.
Loaded<CublasLtApi> fake_cublaslt();

/// How many descriptions exist, and how many products ran since the process began.
struct FakeBlasCounts {
  int live = 0;
  int products = 0;
};
FakeBlasCounts fake_blas_counts();
/// Whether the heuristic finds nothing from now on.
void set_fake_blas_empty(bool now);

}  // namespace dais::cuda
