#pragma once

#include "runtime/kernel.h"

namespace dais {

/// Adds the rows of MatMulNBits.
void register_nbits_rows(Kernels& kernels);

}  // namespace dais
