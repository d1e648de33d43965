#pragma once

#include "ops/matmul/product_cuda.h"

namespace dais {

/// Which inputs of a node give what a product of bytes needs beside A and B; -1: none does.
struct ByteOperands {
  int a_zero = -1, b_zero = -1;
  int a_scale = -1, b_scale = -1, y_scale = -1, y_zero = -1;
  int bias = -1;   ///< i32, of the results' rows in convolutions, else of their columns
  int added = -1;  ///< f32, of the columns of results that are f32
  float alpha = 1;
};

/// The kernels' Finish, byte for byte.
struct ByteFinish {
  const void *a_zero = nullptr, *b_zero = nullptr;
  const void *a_scale = nullptr, *b_scale = nullptr, *y_scale = nullptr, *y_zero = nullptr;
  const void *bias = nullptr, *added = nullptr;
  int32_t a_zero_step = 0, b_zero_step = 0, a_scale_step = 0, b_scale_step = 0;
  int32_t bias_row_step = 0, bias_column_step = 0;
  float alpha = 1;
  int32_t least = 0, most = 0;

  void point_to(const ByteOperands& with, const Arguments& arguments) noexcept;
};
/// All of it but the addresses, for a product with so many rows and columns in all; nothing when
/// the sizes of scales and zero points are others than the kernels know.
std::optional<ByteFinish> byte_finish(const ByteOperands& with, const Sizes& sizes, bool matrices,
                                      int64_t rows, int64_t columns, DType out);

/// "int8", "uint8", "f8e4m3" or "f8e5m2"; null: no type of bytes that kernels multiply.
const char* byte_name(DType dtype);
/// Whether a byte of that type is a float.
bool is_float8(DType dtype);

/// What kernels of products of bytes are compiled with: the types of A, B and the results, and
/// STORE. Only for nodes that accepts_bytes takes.
std::vector<std::string> byte_options(const KernelQuery& query, const ProductForm& form,
                                      const ByteOperands& with);

/// Rows for products of bytes (byte_product.cu): of integers exact, of floats of 8 bits in float
/// where the device has the instruction. A scale or zero point is one value, or one
/// for each row of A and column of B (of a convolution: for each channel of its weights).
Verdict accepts_bytes(const KernelQuery& query, const ProductForm& form, const ByteOperands& with);
/// `turned_b`: B's elements as [columns, depth] in memory of the row's, which is read in place of
/// the node's; else null.
std::unique_ptr<Kernel> prepare_bytes(const KernelQuery& query, const ProductForm& form,
                                      const ByteOperands& with,
                                      std::shared_ptr<DeviceMemory> turned_b = nullptr);

}  // namespace dais
