#pragma once

#include "runtime/kernel.h"

namespace dais {

/// Registers the integer matrix products: MatMulInteger, MatMulIntegerToFloat, QLinearMatMul,
/// QGemm.
void register_byte_products(Kernels& kernels);
/// Registers QLinearConv and ConvInteger.
void register_byte_convolutions(Kernels& kernels);

}  // namespace dais
