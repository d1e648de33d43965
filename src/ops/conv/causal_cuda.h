#pragma once

#include "runtime/kernel.h"

namespace dais {

/// The row of the convolution that looks back only.
void register_causal_cuda(Kernels& kernels);

}  // namespace dais
