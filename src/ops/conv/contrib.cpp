#include "ops/conv/contrib.h"

#include "ir/onnx_import.h"
#include "ops/conv/conv.h"
#include "ops/elementwise/elementwise.h"
#include "ops/transpose/transpose.h"

namespace dais {
namespace {

/// Weights [M, kernel..., C / group] brought to [M, C / group, kernel...]; those that already are
/// so (writers differ) stay.
Value* channels_second(OnnxImport& c, Value* w, const std::vector<int64_t>& kernel) {
  if (!w || !w->type.shape) c.fail("the weights' shape is unknown");
  const Dims& shape = *w->type.shape;
  const auto kernel_at = [&](size_t first) {
    bool same = kernel.size() + 2 == shape.size();
    for (size_t i = 0; same && i < kernel.size(); ++i) same = shape[first + i].is(kernel[i]);
    return same;
  };
  if (!c.has(0)) c.fail("the input is missing");
  const auto& x = c.in[0]->type.shape;
  const auto depth_at = [&](size_t axis) {
    return !x || x->empty() || !x->back().is_constant() ||
           shape[axis] * Dim(c.integer("group", 1)) == x->back();
  };
  if (kernel.empty() || (kernel_at(2) && depth_at(1))) return w;
  if (!kernel_at(1)) c.fail("the weights do not fit kernel_shape");
  std::vector<int64_t> perm{0, std::ssize(shape) - 1};
  for (int64_t axis = 1; axis + 1 < std::ssize(shape); ++axis) perm.push_back(axis);
  return c.graph.add(Transpose{.perm = perm}, {w});
}

/// Inputs: X, W, B?, Z? (added before the activation).
Values import_fused(OnnxImport& c) {
  auto attrs = c.attrs<Conv>();
  Value* w = c.input(1);
  if (c.type.starts_with("Nhwc")) {
    attrs.channels_last = true;
    w = channels_second(c, w, attrs.kernel_shape);
  }
  Value* y = c.emit(attrs, {c.input(0), w, c.input(2)})[0];
  if (c.has(3)) y = c.graph.add(Add{}, {y, c.input(3)});
  return {add_activation(c.graph, c.text("activation", ""), c.numbers("activation_params"), y)};
}

}  // namespace

void define_conv_contrib(OpRegistry& registry) {
  for (const std::string_view type : {"FusedConv", "NhwcConv", "NhwcFusedConv"})
    registry.add_rule({.type = type, .domain = "com.microsoft", .import = import_fused});
}

}  // namespace dais
