#include <cmath>

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_import.h"
#include "ops/cast/cast.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/product.h"
#include "ops/wide.h"

namespace dais {
namespace {

/// One value for all, one for each line (row of A, column of B), or one for each line of each
/// matrix. Axes of size 1 that broadcasting adds do not change the order.
class Lines {
 public:
  Lines(const Call& c, const Tensor& tensor, int64_t lines, int64_t matrices)
      : values_(tensor), count_(tensor.elements()) {
    if (count_ != 1 && count_ != lines && count_ != lines * matrices)
      c.fail("scales and zero points must be one value, or one for each row of A and column of B");
  }
  float at(int64_t index) const { return count_ == 1 ? values_[0] : values_[index % count_]; }

 private:
  WideView<float> values_;
  int64_t count_;
};

int64_t rows_of(const Tensor& a) { return a.rank() > 1 ? a.shape()[a.rank() - 2] : 1; }
int64_t columns_of(const Tensor& b) { return b.rank() > 1 ? b.shape().back() : 1; }
int64_t matrices_of(const Tensor& tensor) {
  return tensor.rank() > 2 ? tensor.shape().elements(0, tensor.rank() - 2) : 1;
}

/// a minus its zero point, per row.
std::vector<float> centered_rows(const Call& c, const Tensor& a, const Tensor* zero) {
  std::vector<float> out = to_wide<float>(a);
  if (!zero || out.empty()) return out;
  const Lines zeros(c, *zero, rows_of(a), matrices_of(a));
  const int64_t depth = a.shape().back(), lines = a.elements() / depth;
  float* to = out.data();
  for (int64_t row = 0; row < lines; ++row)
    for (int64_t k = 0; k < depth; ++k) *to++ -= zeros.at(row);
  return out;
}

/// b minus its zero point, per column.
std::vector<float> centered_columns(const Call& c, const Tensor& b, const Tensor* zero) {
  std::vector<float> out = to_wide<float>(b);
  if (!zero || out.empty()) return out;
  const int64_t columns = columns_of(b), matrices = matrices_of(b);
  const Lines zeros(c, *zero, columns, matrices);
  const int64_t depth = b.elements() / (columns * matrices);
  float* to = out.data();
  for (int64_t matrix = 0; matrix < matrices; ++matrix)
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t j = 0; j < columns; ++j) *to++ -= zeros.at(matrix * columns + j);
  return out;
}

struct Product {
  ProductShape shape;
  std::vector<double> sums;
};

Product integer_product(const Call& c, const Tensor& a, const Tensor* a_zero, const Tensor& b,
                        const Tensor* b_zero) {
  Product out{product_shape(a.shape(), b.shape()), {}};
  const auto left = centered_rows(c, a, a_zero), right = centered_columns(c, b, b_zero);
  out.sums.resize(static_cast<size_t>(out.shape.out.elements()));
  batched_product(out.shape, left.data(), right.data(), out.sums.data());
  return out;
}

/// Sets every result to body(sum, scale), where scale is the product of the operands' scales.
template <typename Body>
std::vector<float> scaled(const Call& c, const Product& product, const Tensor& a,
                          const Tensor& a_scale, const Tensor& b, const Tensor& b_scale,
                          Body&& body) {
  std::vector<float> out(product.sums.size());
  const int64_t rows = std::max<int64_t>(rows_of(a), 1);
  const int64_t columns = std::max<int64_t>(columns_of(b), 1);
  const int64_t lines = static_cast<int64_t>(out.size()) / columns;
  const Lines left(c, a_scale, rows, matrices_of(a));
  const Lines right(c, b_scale, columns, matrices_of(b));
  for (int64_t line = 0, i = 0; line < lines; ++line)
    for (int64_t j = 0; j < columns; ++j, ++i)
      out[static_cast<size_t>(i)] =
          body(i, static_cast<float>(product.sums[static_cast<size_t>(i)]),
               left.at(line) * right.at(line / rows * columns + j));
  return out;
}

const Tensor* optional_input(const Call& c, size_t i) { return c.has(i) ? &c.in(i) : nullptr; }

float scalar(const Call& c, size_t i) {
  if (c.in(i).elements() != 1) c.fail("input " + std::to_string(i) + " must be a scalar");
  return WideView<float>(c.in(i))[0];
}

void infer_integer(Inference& c) {
  c.set(0, DType::i32);
  c.set(0, DType::i32, product_dims(c, c.shape(0), c.shape(1)));
}

void reference_integer(Call& c) {
  const Product product =
      integer_product(c, c.in(0), optional_input(c, 2), c.in(1), optional_input(c, 3));
  Tensor& y = c.out(0, product.shape.out);
  // Through i64: sums beyond i32 wrap, as accumulators of that width do.
  const std::vector<int64_t> sums(product.sums.begin(), product.sums.end());
  store_wide(y, 0, sums.data(), y.elements());
}

void infer_qlinear(Inference& c) {
  c.set(0, c.dtype(7));
  c.set(0, c.dtype(7), product_dims(c, c.shape(0), c.shape(3)));
}

void reference_qlinear(Call& c) {
  const Product product = integer_product(c, c.in(0), &c.in(2), c.in(3), &c.in(5));
  const float y_scale = scalar(c, 6), y_zero = scalar(c, 7);
  Tensor& y = c.out(0, product.shape.out);
  const auto out =
      scaled(c, product, c.in(0), c.in(1), c.in(3), c.in(4), [&](int64_t, float sum, float scale) {
        return std::nearbyint(sum * (scale / y_scale)) + y_zero;
      });
  store_saturated(y, 0, out.data(), y.elements());
}

void infer_to_float(Inference& c) {
  c.set(0, c.dtype(2));
  c.set(0, c.dtype(2), product_dims(c, c.shape(0), c.shape(1)));
}

void reference_to_float(Call& c) {
  const Product product =
      integer_product(c, c.in(0), optional_input(c, 4), c.in(1), optional_input(c, 5));
  Tensor& y = c.out(0, product.shape.out);
  std::vector<float> addend;
  if (const Tensor* bias = optional_input(c, 6)) {
    c.require(bias->elements() == columns_of(c.in(1)), "bias must have one value per column");
    addend = to_wide<float>(*bias);
  }
  const auto out = scaled(c, product, c.in(0), c.in(2), c.in(1), c.in(3),
                          [&](int64_t i, float sum, float scale) {
                            const auto at = static_cast<size_t>(i);
                            return sum * scale + (addend.empty() ? 0 : addend[at % addend.size()]);
                          });
  store_wide(y, 0, out.data(), y.elements());
}

/// The exact i32 product, then scales: what integer kernels can take apart.
Values decompose_to_float(Graph& graph, const Node& node) {
  const auto given = [&](size_t i) { return node.has(i) ? node.in[i] : nullptr; };
  Value* sums = graph.add(MatMulInteger{}, {node.in[0], node.in[1], given(4), given(5)});
  Value* values = graph.add(Cast{.to = node.outs[0]->type.dtype}, {sums});
  Value* scale = graph.add(Mul{}, {node.in[2], node.in[3]});
  Value* y = graph.add(Mul{}, {values, scale});
  return {given(6) ? graph.add(Add{}, {y, given(6)}) : y};
}

void infer_qgemm(Inference& c) {
  const auto& attrs = c.attrs<QGemm>();
  const DType dtype = !c.has(7) ? c.dtype(1) : c.has(8) ? c.dtype(8) : c.dtype(0);
  c.set(0, dtype);
  const Dims &a = c.shape(0), &b = c.shape(3);
  c.require(a.size() == 2 && b.size() == 2, "A and B must be matrices");
  c.set(0, dtype, {a[attrs.trans_a ? 1 : 0], b[attrs.trans_b ? 0 : 1]});
}

Tensor oriented(const Tensor& matrix, bool turn) {
  if (!turn) return matrix;
  Tensor out(matrix.dtype(), {matrix.shape()[1], matrix.shape()[0]});
  visit_storage(matrix.dtype(), [&]<typename T>() {
    transpose_loop(matrix.shape()[0], matrix.shape()[1], matrix.storage<T>(), out.storage<T>());
  });
  return out;
}

void reference_qgemm(Call& c) {
  const auto& attrs = c.attrs<QGemm>();
  c.require(c.in(0).rank() == 2 && c.in(3).rank() == 2, "A and B must be matrices");
  const Tensor a = oriented(c.in(0), attrs.trans_a), b = oriented(c.in(3), attrs.trans_b);
  const Product product = integer_product(c, a, &c.in(2), b, &c.in(5));
  Tensor& y = c.out(0, product.shape.out);
  std::vector<float> addend;
  if (const Tensor* bias = optional_input(c, 6)) {
    const int64_t count = bias->elements();
    c.require(count == 1 || count == columns_of(b) || count == y.elements(),
              "C does not broadcast to A * B");
    addend = to_wide<float>(*bias);
  }
  const bool quantised = c.has(7);
  const float y_scale = quantised ? scalar(c, 7) : 1, y_zero = c.has(8) ? scalar(c, 8) : 0;
  const auto out =
      scaled(c, product, a, c.in(1), b, c.in(4), [&](int64_t i, float sum, float scale) {
        if (!addend.empty()) sum += addend[static_cast<size_t>(i) % addend.size()];
        const float value = sum * (attrs.alpha * scale / y_scale);
        return quantised ? std::nearbyint(value) + y_zero : value;
      });
  store_saturated(y, 0, out.data(), y.elements());
}

/// 2 * depth for each number of the result; `trans_a` puts the depth first.
Cost product_cost(const Node& node, bool trans_a) {
  const auto &a = node.in[0]->type.shape, &y = node.outs[0]->type.shape;
  if (!a || !y || a->empty()) return {};
  const auto depth = (trans_a ? a->front() : a->back()).constant();
  const auto outputs = product(*y, 0, y->size()).constant();
  if (!depth || !outputs) return {};
  return {.flops = 2 * static_cast<double>(*depth) * static_cast<double>(*outputs)};
}
Cost cost(const Node& node) { return product_cost(node, false); }
Cost cost_qgemm(const Node& node) { return product_cost(node, node.as<QGemm>()->trans_a); }

}  // namespace

const Op MatMulInteger::op{
    .name = "mat_mul_integer",
    .attrs = &AttrsOf<MatMulInteger>::info,
    .infer = infer_integer,
    .reference = reference_integer,
    .cost = cost,
    .onnx = {{"MatMulInteger", 10}},
};

const Op QLinearMatMul::op{
    .name = "q_linear_mat_mul",
    .attrs = &AttrsOf<QLinearMatMul>::info,
    .infer = infer_qlinear,
    .reference = reference_qlinear,
    .cost = cost,
    .onnx = {{"QLinearMatMul", 10}},
};

const Op MatMulIntegerToFloat::op{
    .name = "mat_mul_integer_to_float",
    .attrs = &AttrsOf<MatMulIntegerToFloat>::info,
    .infer = infer_to_float,
    .reference = reference_to_float,
    .decompose = decompose_to_float,
    .cost = cost,
    .onnx = {{.type = "MatMulIntegerToFloat", .domain = "com.microsoft"}},
};

const Op QGemm::op{
    .name = "q_gemm",
    .attrs = &AttrsOf<QGemm>::info,
    .infer = infer_qgemm,
    .reference = reference_qgemm,
    .cost = cost_qgemm,
    .onnx = {{.type = "QGemm", .domain = "com.microsoft"}},
};

}  // namespace dais
