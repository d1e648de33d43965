#pragma once

#include "runtime/kernel.h"

namespace dais {

/// The row of the own kernel for MatMul, Gemm and what is fused with them.
Verdict accepts_matmul_cuda(const KernelQuery& query);
std::unique_ptr<Kernel> prepare_matmul_cuda(const KernelQuery& query);

}  // namespace dais
