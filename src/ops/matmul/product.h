#pragma once

#include "ir/inference.h"
#include "ops/gemm_loop.h"

namespace dais {

/// Sizes of a (batched) matrix product whose leading axes broadcast.
struct ProductShape {
  Shape out;    ///< the result's shape
  Shape batch;  ///< broadcast leading axes
  GemmShape gemm;
  std::vector<int64_t> a_offset, b_offset;  ///< first element of each batch entry's matrices
};

/// The result's sizes by MatMul's rules; fails when constant sizes clash.
Dims product_dims(const Inference& c, const Dims& a, const Dims& b);

/// The same for concrete sizes. Throws `invalid_argument` when the depths differ.
ProductShape product_shape(const Shape& a, const Shape& b);

/// c = a * b for every batch entry; `c` holds out.elements() sums.
template <typename T>
void batched_product(const ProductShape& shape, const T* a, const T* b, Accumulator<T>* c) {
  const int64_t step = shape.gemm.rows * shape.gemm.columns;
  for (size_t i = 0; i < shape.a_offset.size(); ++i)
    gemm_loop(shape.gemm, a + shape.a_offset[i], b + shape.b_offset[i],
              c + static_cast<int64_t>(i) * step);
}

}  // namespace dais
