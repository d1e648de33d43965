#include "ops/matmul/matmul_cuda.h"

#include "ops/fused/fused.h"
#include "ops/matmul/library_cuda.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/product_cuda.h"
#include "ops/strided.h"

namespace dais {
namespace {

/// Axes of the batch, the last one first, along which A and B step evenly or repeat.
bool set_batch(ProductProblem& p, const Shape& a, const Shape& b, const Shape& batch) {
  const Shape a_lead(std::vector<int64_t>(a.begin(), a.end() - 2));
  const Shape b_lead(std::vector<int64_t>(b.begin(), b.end() - 2));
  const Strides a_steps = broadcast_strides(a_lead, batch),
                b_steps = broadcast_strides(b_lead, batch);
  const int64_t a_matrix = a.elements(a.rank() - 2, a.rank());
  const int64_t b_matrix = b.elements(b.rank() - 2, b.rank());
  for (size_t axis = batch.rank(); axis-- > 0;) {
    if (batch[axis] == 1) continue;
    if (p.batch_axes == 6) return false;
    const auto at = static_cast<size_t>(p.batch_axes++);
    p.batch_sizes[at] = static_cast<uint32_t>(batch[axis]);
    p.a_batch[at] = a_steps[axis] * a_matrix;
    p.b_batch[at] = b_steps[axis] * b_matrix;
  }
  return true;
}

bool fits(int64_t size) { return size < (int64_t{1} << 31) - 64; }

void set_steps(ProductProblem& p, bool turned_a, bool turned_b) {
  p.a_row = turned_a ? 1 : p.depth;
  p.a_column = turned_a ? p.rows : 1;
  p.b_row = turned_b ? 1 : p.columns;
  p.b_column = turned_b ? p.depth : 1;
  p.rows_first_a = turned_a;
  p.columns_first_b = !turned_b;
}

/// A single axis is a row of A or a column of B.
Shape matrix(const Shape& shape, bool left) {
  if (shape.rank() != 1) return shape;
  return left ? Shape{1, shape[0]} : Shape{shape[0], 1};
}

std::optional<ProductCall> call_matmul(const Shape& a_given, const Shape& b_given, const Shape&) {
  const Shape a = matrix(a_given, true), b = matrix(b_given, false);
  const int64_t rows = a[a.rank() - 2], columns = b[b.rank() - 1], depth = a[a.rank() - 1];
  if (depth != b[b.rank() - 2] || !fits(rows) || !fits(columns) || !fits(depth))
    return std::nullopt;
  ProductCall out;
  ProductProblem& p = out.problem;
  p.rows = static_cast<int32_t>(rows);
  p.columns = static_cast<int32_t>(columns);
  p.depth = static_cast<int32_t>(depth);
  set_steps(p, false, false);
  const Shape batch = broadcast(Shape(std::vector<int64_t>(a.begin(), a.end() - 2)),
                                Shape(std::vector<int64_t>(b.begin(), b.end() - 2)));
  out.batches = batch.elements();
  if (out.batches > 0 && !set_batch(p, a, b, batch)) return std::nullopt;
  return out;
}

ProductForm form_of(const Node& product) {
  ProductForm out;
  out.call = call_matmul;
  if (const auto* gemm = product.as<Gemm>())
    out.call = [gemm](const Shape& a, const Shape& b, const Shape&) -> std::optional<ProductCall> {
      ProductCall call;
      ProductProblem& p = call.problem;
      const int64_t depth = a[gemm->trans_a ? 0 : 1];
      const int64_t rows = a[gemm->trans_a ? 1 : 0], columns = b[gemm->trans_b ? 0 : 1];
      if (depth != b[gemm->trans_b ? 1 : 0] || !fits(rows) || !fits(columns) || !fits(depth))
        return std::nullopt;
      p.rows = static_cast<int32_t>(rows);
      p.columns = static_cast<int32_t>(columns);
      p.depth = static_cast<int32_t>(depth);
      set_steps(p, gemm->trans_a, gemm->trans_b);
      return call;
    };
  return out;
}

}  // namespace

Verdict accepts_matmul_cuda(const KernelQuery& query) {
  const Node& product = product_of(query.node);
  if (!product.as<MatMul>() && !product.as<Gemm>()) return no("holds no matrix product");
  if (query.node.as<Fused>())
    for (size_t i = 0; i < 2; ++i)
      if (product.in[i]->type.ranked() && product.in[i]->type.shape->size() < 2)
        return no("an operand is a vector");
  return accepts_product(query, form_of(product));
}

std::unique_ptr<Kernel> prepare_matmul_cuda(const KernelQuery& query) {
  return prepare_product(query, form_of(product_of(query.node)));
}

namespace ops {

void register_matmul_cuda(Kernels& kernels) {
  for (const Op* op : {&MatMul::op, &Gemm::op, &Fused::op}) {
    kernels.add({.name = "product/cublaslt",
                 .op = op,
                 .accepts = accepts_library_product,
                 .prepare = prepare_library_product,
                 .priority = 1});
    kernels.add({.name = "product/cuda",
                 .op = op,
                 .accepts = accepts_matmul_cuda,
                 .prepare = prepare_matmul_cuda});
  }
}

}  // namespace ops
}  // namespace dais
