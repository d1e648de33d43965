#pragma once

#include "runtime/kernel.h"

namespace dais {

/// Rows for matrix products in f32, f16 and bf16 by cuBLASLt, with a bias per column, ReLU or GELU
/// (tanh form) behind them. Sizes for which it knows no way run on the own kernel.
Verdict accepts_library_product(const KernelQuery& query);
std::unique_ptr<Kernel> prepare_library_product(const KernelQuery& query);

}  // namespace dais
