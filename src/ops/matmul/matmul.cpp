#include "ops/matmul/matmul.h"

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_import.h"
#include "ops/matmul/contrib.h"
#include "ops/matmul/matmul_gradient.h"
#include "ops/matmul/product.h"
#include "ops/strided.h"
#include "ops/wide.h"

namespace dais {
namespace {

void infer_matmul(Inference& c) {
  c.set(0, c.dtype(0));
  c.require(c.dtype(0) == c.dtype(1), "both inputs must have the same element type");
  c.set(0, c.dtype(0), product_dims(c, c.shape(0), c.shape(1)));
}

/// What sums are handed on as: wrapping sums fit their signed twin bit for bit.
template <typename T>
using Stored = std::conditional_t<std::is_integral_v<T>, int64_t, double>;

template <typename T>
void matmul_as(const Tensor& a, const Tensor& b, const ProductShape& shape, Tensor& y) {
  std::vector<Accumulator<T>> sums(static_cast<size_t>(y.elements()));
  const WideView<T> left(a), right(b);
  batched_product(shape, left.data(), right.data(), sums.data());
  store_wide(y, 0, reinterpret_cast<const Stored<T>*>(sums.data()), y.elements());
}

void reference_matmul(Call& c) {
  const Tensor &a = c.in(0), &b = c.in(1);
  const ProductShape shape = product_shape(a.shape(), b.shape());
  Tensor& y = c.out(0, shape.out);
  if (is_integer(a.dtype())) return matmul_as<int64_t>(a, b, shape, y);
  visit_wide(a.dtype(), [&]<typename T>() { matmul_as<T>(a, b, shape, y); });
}

double elements_of(const Value* value) {
  double count = 1;
  if (!value->type.shape) return 0;
  for (const Dim& dim : *value->type.shape) {
    const auto number = dim.constant();
    count *= number ? static_cast<double>(*number) : 1;
  }
  return count;
}

Cost cost_matmul(const Node& node) {
  const auto& shape = node.in[0]->type.shape;
  const auto depth = shape && !shape->empty() ? shape->back().constant() : std::nullopt;
  return {.flops = 2 * elements_of(node.outs[0]) * static_cast<double>(depth.value_or(1))};
}

void infer_gemm(Inference& c) {
  const auto& attrs = c.attrs<Gemm>();
  c.set(0, c.dtype(0));
  const Dims &a = c.shape(0), &b = c.shape(1);
  c.require(a.size() == 2 && b.size() == 2, "A and B must be matrices");
  const Dim& left = a[attrs.trans_a ? 0 : 1];
  const Dim& right = b[attrs.trans_b ? 1 : 0];
  if (left.is_constant() && right.is_constant() && !(left == right))
    c.fail("depths " + left.text() + " and " + right.text() + " differ", "Check transA and transB");
  const Dims out{a[attrs.trans_a ? 1 : 0], b[attrs.trans_b ? 0 : 1]};
  c.set(0, c.dtype(0), out);
  if (c.has(2) && c.ranked(2)) {
    c.require(c.rank(2) <= 2, "C must have at most two axes");
    c.broadcast(out, c.shape(2));
  }
}

template <typename T>
void add_scaled(const Tensor& bias, float beta, const Shape& shape, Stored<T>* to) {
  const WideView<T> addend(bias);
  const StridedLoop<1> loop(shape, {broadcast_strides(bias.shape(), shape)});
  loop.rows([&](const std::array<int64_t, 1>& at) {
    for (int64_t i = 0; i < loop.size(); ++i) {
      const auto value = static_cast<Stored<T>>(addend[at[0] + i * loop.step(0)]);
      *to++ += beta == 1 ? value : static_cast<Stored<T>>(static_cast<double>(value) * beta);
    }
  });
}

template <typename T>
void gemm_as(const Gemm& attrs, const Tensor& a, const Tensor& b, const Tensor* bias, Tensor& y) {
  const int64_t depth = a.shape()[attrs.trans_a ? 0 : 1];
  const int64_t rows = y.shape()[0], columns = y.shape()[1];
  GemmShape shape{.rows = rows, .columns = columns, .depth = depth, .b_row = columns};
  shape.a_row = attrs.trans_a ? 1 : depth;
  shape.a_column = attrs.trans_a ? rows : 1;
  const WideView<T> left(a), right(b);
  std::vector<T> turned;
  if (attrs.trans_b) {
    turned.resize(static_cast<size_t>(depth * columns));
    transpose_loop(columns, depth, right.data(), turned.data());
  }
  std::vector<Accumulator<T>> sums(static_cast<size_t>(y.elements()));
  gemm_loop(shape, left.data(), attrs.trans_b ? turned.data() : right.data(), sums.data());
  std::vector<Stored<T>> out(sums.begin(), sums.end());
  if (attrs.alpha != 1)
    for (auto& value : out)
      value = static_cast<Stored<T>>(static_cast<double>(value) * attrs.alpha);
  if (bias && attrs.beta != 0) add_scaled<T>(*bias, attrs.beta, y.shape(), out.data());
  store_wide(y, 0, out.data(), y.elements());
}

void reference_gemm(Call& c) {
  const auto& attrs = c.attrs<Gemm>();
  const Tensor &a = c.in(0), &b = c.in(1);
  c.require(a.rank() == 2 && b.rank() == 2, "A and B must be matrices");
  c.require(a.shape()[attrs.trans_a ? 0 : 1] == b.shape()[attrs.trans_b ? 1 : 0],
            "the depths of A and B differ");
  const Shape shape{a.shape()[attrs.trans_a ? 1 : 0], b.shape()[attrs.trans_b ? 0 : 1]};
  const Tensor* bias = c.has(2) ? &c.in(2) : nullptr;
  if (bias) c.require(broadcast(shape, bias->shape()) == shape, "C does not broadcast to A * B");
  Tensor& y = c.out(0, shape);
  if (is_integer(a.dtype())) return gemm_as<int64_t>(attrs, a, b, bias, y);
  visit_wide(a.dtype(), [&]<typename T>() { gemm_as<T>(attrs, a, b, bias, y); });
}

/// Versions 1 and 6 have a `broadcast` attribute; what it allows is what later ones always allow.
Values import_old_gemm(OnnxImport& c) { return c.emit(c.attrs<Gemm>(), c.in); }

Cost cost_gemm(const Node& node) {
  const auto& shape = node.in[0]->type.shape;
  if (!shape || shape->size() != 2) return {};
  const auto depth = (*shape)[node.as<Gemm>()->trans_a ? 0 : 1].constant();
  return {.flops = 2 * elements_of(node.outs[0]) * static_cast<double>(depth.value_or(1))};
}

}  // namespace

const Op MatMul::op{
    .name = "mat_mul",
    .attrs = &AttrsOf<MatMul>::info,
    .infer = infer_matmul,
    .reference = reference_matmul,
    .gradient = gradient_matmul,
    .cost = cost_matmul,
    .onnx = {{"MatMul"}},
};

const Op Gemm::op{
    .name = "gemm",
    .attrs = &AttrsOf<Gemm>::info,
    .infer = infer_gemm,
    .reference = reference_gemm,
    .gradient = gradient_gemm,
    .cost = cost_gemm,
    .onnx = {{"Gemm", 7}, {.type = "Gemm", .until = 6, .import = import_old_gemm}},
};

namespace ops {
void define_matmul(OpRegistry& registry) {
  for (const Op* op : {&MatMul::op, &Gemm::op, &MatMulInteger::op, &QLinearMatMul::op,
                       &MatMulIntegerToFloat::op, &QGemm::op, &MatMulNBits::op})
    registry.add(*op);
  define_matmul_contrib(registry);
}
}  // namespace ops
}  // namespace dais
