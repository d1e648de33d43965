#pragma once

#include "runtime/kernel.h"

namespace dais {

/// Rows of CumSum, CumProd, ArgMax and ArgMin.
void register_scans(Kernels& kernels);
/// The row of reductions that takes what no other does.
void register_strided_reductions(Kernels& kernels);

}  // namespace dais
