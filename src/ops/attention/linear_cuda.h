#pragma once

#include "runtime/kernel.h"

namespace dais {

/// The row of attention through a state of fixed size.
void register_linear_cuda(Kernels& kernels);

}  // namespace dais
