#pragma once

#include "backends/cuda/api/cudnn.h"

namespace dais::cuda {

/// cuDNN's graph interface for tests, on the memory of the stand-in driver. Descriptors hold what
/// they are given; finalising refuses what the library refuses (an attribute that is missing, of
/// the wrong type or count, or that names a descriptor that is not finalised). Plans run graphs of
/// one convolution with pointwise operations behind it by plain loops.
Loaded<CudnnApi> fake_cudnn();

/// How many descriptors exist, and how many plans ran since the process began.
struct FakeDnnCounts {
  int live = 0;
  int runs = 0;
};
FakeDnnCounts fake_dnn_counts();
/// What the heuristics know from now on: no engine, or only one that rounds its inputs.
enum class FakeEngines { all, none, rounding };
void set_fake_dnn_engines(FakeEngines now);

}  // namespace dais::cuda
