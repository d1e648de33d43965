#pragma once

#include "runtime/kernel.h"

namespace dais {

/// Registers the integer matrix products: MatMulInteger, MatMulIntegerToFloat, QLinearMatMul,
/// QGemm.
void register_byte_products(Kernels& kernels);
/// Registers QLinearConv and ConvInteger.
void register_byte_convolutions(Kernels& kernels);
/// Registers quantisation, dequantisation and MaxPool of bytes.
void register_byte_conversions(Kernels& kernels);

}  // namespace dais
