#pragma once

#include "runtime/kernel.h"

namespace dais {

/// Rows of CumSum, CumProd, ArgMax and ArgMin.
void register_scans(Kernels& kernels);

}  // namespace dais
