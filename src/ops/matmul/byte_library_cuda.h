#pragma once

#include "ops/matmul/byte_cuda.h"

namespace dais {

/// Rows for exact products of bytes by cuBLASLt, with kernels of dais before them (signs, sums of
/// A's rows) and behind them (zero points, scales). The library wants both operands with the depth
/// innermost, so B is a constant matrix, kept turned; `turned_b`: it lies so. Sizes for which it
/// knows no way run on the own kernel.
Verdict accepts_library_bytes(const KernelQuery& query, const ProductForm& form,
                              const ByteOperands& with);
std::unique_ptr<Kernel> prepare_library_bytes(const KernelQuery& query, const ProductForm& form,
                                              const ByteOperands& with, bool turned_b);

}  // namespace dais
