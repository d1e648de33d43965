#pragma once

#include "ops/matmul/product_cuda.h"

namespace dais {

/// Which inputs of a node give what a product of bytes needs beside A and B; -1: none does.
struct ByteOperands {
  int a_zero = -1, b_zero = -1;
  int a_scale = -1, b_scale = -1, y_scale = -1, y_zero = -1;
  int bias = -1;  ///< i32, of the results' rows in convolutions, else of their columns
  float alpha = 1;
};

/// Rows for exact products of bytes (byte_product.cu). A scale or zero point is one value, or one
/// for each row of A and column of B (of a convolution: for each channel of its weights).
Verdict accepts_bytes(const KernelQuery& query, const ProductForm& form, const ByteOperands& with);
std::unique_ptr<Kernel> prepare_bytes(const KernelQuery& query, const ProductForm& form,
                                      const ByteOperands& with);

}  // namespace dais
