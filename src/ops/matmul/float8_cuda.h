#pragma once

#include "ops/matmul/byte_cuda.h"

namespace dais {

/// A row for MatMulIntegerToFloat of 8-bit floats (e4m3, e5m2, not both e5m2) by cuBLASLt, from
/// compute capability 8.9 on: one scale for each operand, no zero points, no bias. The library
/// wants both operands with the depth innermost and rows of 16 bytes, so B is a constant matrix,
/// kept turned. Sizes for which it knows no way run on the own kernel.
Verdict accepts_library_float8(const KernelQuery& query);
std::unique_ptr<Kernel> prepare_library_float8(const KernelQuery& query, const ProductForm& form,
                                               const ByteOperands& with);

}  // namespace dais
