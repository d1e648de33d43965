#pragma once

#include "runtime/kernel.h"

namespace dais {

/// Rows of convolutions by cuDNN, with a bias and an activation behind them in the same graph;
/// `own` gives the row of dais for sizes that it has no engine for.
Verdict accepts_library_conv(const KernelQuery& query);
std::unique_ptr<Kernel> prepare_library_conv(const KernelQuery& query, std::unique_ptr<Kernel> own);

}  // namespace dais
