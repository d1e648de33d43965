// The quantised operators of com.microsoft: each becomes dequantise, the operator, quantise, which
// the passes fuse again where an integer kernel exists.
#include "ir/onnx_import.h"
#include "ops/concat/concat.h"
#include "ops/elementwise/elementwise.h"
#include "ops/pool/pool.h"
#include "ops/quantize/quantize.h"
#include "ops/reduce/reduce.h"
#include "ops/registry.h"
#include "ops/softmax/softmax.h"

namespace dais {
namespace {

/// Inputs first (values), first + 1 (scale) and first + 2 (zero point, may be left out) as float.
Value* real(OnnxImport& c, size_t first) {
  return c.graph.add(DequantizeLinear{}, {c.input(first), c.input(first + 1), c.input(first + 2)});
}

/// Quantised by inputs first (scale) and first + 1 (zero point), to the type of `like`.
Values quantised(OnnxImport& c, Value* y, size_t first, const Value* like) {
  QuantizeLinear attrs;
  if (!c.has(first + 1)) attrs.output_dtype = like->type.dtype;
  return c.emit(attrs, {y, c.input(first), c.input(first + 1)});
}

template <typename Binary>
Values import_binary(OnnxImport& c) {
  return quantised(c, c.graph.add(Binary{}, {real(c, 0), real(c, 3)}), 6, c.input(0));
}

template <typename Unary>
Values import_unary(OnnxImport& c) {
  return quantised(c, c.graph.add(c.attrs<Unary>(), {real(c, 0)}), 3, c.input(0));
}

Values import_softmax(OnnxImport& c) {
  auto attrs = c.attrs<Softmax>();
  if (c.integer("opset", 13) < 13) {
    if (!c.has(0)) c.fail("the input is missing");
    // One row from `axis` on is the same as one axis only when that is the last.
    const auto& shape = c.in[0]->type.shape;
    const int64_t rank = shape ? std::ssize(*shape) : 0;
    if (attrs.axis != -1 && attrs.axis != rank - 1)
      c.fail("the softmax of flattened axes is not supported");
    attrs.axis = -1;
  }
  return quantised(c, c.graph.add(attrs, {real(c, 0)}), 3, c.input(0));
}

/// Inputs: y_scale, y_zero, then (values, scale, zero point) of each part.
Values import_concat(OnnxImport& c) {
  if (c.in.size() < 5 || (c.in.size() - 2) % 3 != 0) c.fail("inputs do not come in sets of three");
  Values parts;
  for (size_t i = 2; i < c.in.size(); i += 3) parts.push_back(real(c, i));
  return quantised(c, c.graph.add(c.attrs<Concat>(), parts), 0, c.input(2));
}

Values import_where(OnnxImport& c) {
  return quantised(c, c.graph.add(Where{}, {c.input(0), real(c, 1), real(c, 4)}), 7, c.input(1));
}

Values import_reduce_mean(OnnxImport& c) {
  const auto axes = c.integers("axes");
  const ReduceMean attrs{.keepdims = c.integer("keepdims", 1) != 0};
  Values in{real(c, 0)};
  if (!axes.empty()) in.push_back(c.ints(axes));
  return quantised(c, c.graph.add(attrs, in), 3, c.input(0));
}

}  // namespace

namespace ops {
void define_qlinear(OpRegistry& registry) {
  const auto rule = [&](std::string_view type, Values (*import)(OnnxImport&)) {
    registry.add_rule({.type = type, .domain = "com.microsoft", .import = import});
  };
  rule("QLinearAdd", import_binary<Add>);
  rule("QLinearMul", import_binary<Mul>);
  rule("QLinearSigmoid", import_unary<Sigmoid>);
  rule("QLinearLeakyRelu", import_unary<LeakyRelu>);
  rule("QLinearAveragePool", import_unary<AveragePool>);
  rule("QLinearGlobalAveragePool", import_unary<GlobalAveragePool>);
  rule("QLinearSoftmax", import_softmax);
  rule("QLinearConcat", import_concat);
  rule("QLinearWhere", import_where);
  rule("QLinearReduceMean", import_reduce_mean);
}
}  // namespace ops
}  // namespace dais
