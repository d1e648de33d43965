#include "ops/matmul/matmul_cuda.h"

#include "ops/fused/fused.h"
#include "ops/matmul/byte_library_cuda.h"
#include "ops/matmul/float8_cuda.h"
#include "ops/matmul/library_cuda.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/nbits_cuda.h"
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

std::optional<ProductCall> call_gemm(const Shape& a, const Shape& b, bool trans_a, bool trans_b) {
  ProductCall call;
  ProductProblem& p = call.problem;
  const int64_t depth = a[trans_a ? 0 : 1];
  const int64_t rows = a[trans_a ? 1 : 0], columns = b[trans_b ? 0 : 1];
  if (depth != b[trans_b ? 1 : 0] || !fits(rows) || !fits(columns) || !fits(depth))
    return std::nullopt;
  p.rows = static_cast<int32_t>(rows);
  p.columns = static_cast<int32_t>(columns);
  p.depth = static_cast<int32_t>(depth);
  set_steps(p, trans_a, trans_b);
  return call;
}

template <typename Struct>
auto gemm_call(const Struct& attrs) {
  return [&attrs](const Shape& a, const Shape& b, const Shape&) {
    return call_gemm(a, b, attrs.trans_a, attrs.trans_b);
  };
}

ProductForm form_of(const Node& product) {
  ProductForm out;
  out.call = call_matmul;
  if (const auto* gemm = product.as<Gemm>()) out.call = gemm_call(*gemm);
  if (const auto* gemm = product.as<QGemm>()) out.call = gemm_call(*gemm);
  if (product.as<QGemm>() || product.as<QLinearMatMul>()) out.b = 3;
  return out;
}

/// Where the node has its zero points, scales and bias.
ByteOperands bytes_of(const Node& node) {
  const auto given = [&](int i) { return node.has(static_cast<size_t>(i)) ? i : -1; };
  if (node.as<MatMulInteger>()) return {.a_zero = given(2), .b_zero = given(3)};
  if (node.as<MatMulIntegerToFloat>())
    return {.a_zero = given(4), .b_zero = given(5), .a_scale = 2, .b_scale = 3, .added = given(6)};
  ByteOperands out{.a_zero = 2, .b_zero = 5, .a_scale = 1, .b_scale = 4};
  if (const auto* gemm = node.as<QGemm>()) {
    out.bias = given(6);
    out.y_scale = given(7);
    out.y_zero = given(8);
    out.alpha = gemm->alpha;
  } else {
    out.y_scale = 6;
    out.y_zero = 7;
  }
  return out;
}

Verdict accepts_byte_matmul(const KernelQuery& query) {
  return accepts_bytes(query, form_of(query.node), bytes_of(query.node));
}

std::unique_ptr<Kernel> prepare_byte_matmul(const KernelQuery& query) {
  return prepare_bytes(query, form_of(query.node), bytes_of(query.node));
}

std::unique_ptr<Kernel> prepare_float8_matmul(const KernelQuery& query) {
  return prepare_library_float8(query, form_of(query.node), bytes_of(query.node));
}

bool turned(const Node& node, bool QGemm::*side) {
  const auto* gemm = node.as<QGemm>();
  return gemm && gemm->*side;
}

Verdict accepts_library_byte_matmul(const KernelQuery& query) {
  if (turned(query.node, &QGemm::trans_a)) return no("A lies turned");
  return accepts_library_bytes(query, form_of(query.node), bytes_of(query.node));
}

std::unique_ptr<Kernel> prepare_library_byte_matmul(const KernelQuery& query) {
  return prepare_library_bytes(query, form_of(query.node), bytes_of(query.node),
                               turned(query.node, &QGemm::trans_b));
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
  for (const Op* op :
       {&MatMulInteger::op, &MatMulIntegerToFloat::op, &QLinearMatMul::op, &QGemm::op}) {
    kernels.add({.name = "bytes/cublaslt",
                 .op = op,
                 .accepts = accepts_library_byte_matmul,
                 .prepare = prepare_library_byte_matmul,
                 .priority = 1});
    kernels.add({.name = "bytes/cuda",
                 .op = op,
                 .accepts = accepts_byte_matmul,
                 .prepare = prepare_byte_matmul});
  }
  kernels.add({.name = "float8/cublaslt",
               .op = &MatMulIntegerToFloat::op,
               .accepts = accepts_library_float8,
               .prepare = prepare_float8_matmul,
               .priority = 2});
  register_nbits_cuda(kernels);
}

}  // namespace ops
}  // namespace dais
