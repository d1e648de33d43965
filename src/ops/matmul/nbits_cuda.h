#pragma once

#include "runtime/kernel.h"

namespace dais {

/// Adds the row of products with weights of a few bits.
void register_nbits_cuda(Kernels& kernels);

}  // namespace dais
