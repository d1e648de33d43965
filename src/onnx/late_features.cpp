#include "onnx/late_features.h"

#include <algorithm>

#include "ir/onnx_export.h"
#include "ops/shape/shape.h"
#include "ops/slice/slice.h"

namespace dais::onnx {
namespace {

/// All sizes, then the range of them.
Values shape_in_parts(Graph& graph, const Node& node) {
  const ShapeOf& range = *node.as<ShapeOf>();
  const auto bound = [&](int64_t value) {
    return graph.add_constant(Tensor::of<int64_t>({1}, {value}));
  };
  Value* all = graph.add(ShapeOf{}, {node.in[0]});
  return {graph.add(Slice{}, {all, bound(range.start), bound(range.end.value_or(INT64_MAX))})};
}

// What ONNX wrote in the change notes of its operators, from opset 14 on.
constexpr LateFeature kFeatures[] = {
    {.op = "average_pool", .attribute = "dilations", .since = 19},
    {.op = "cast", .attribute = "round_mode", .since = 25},
    {.op = "cast", .attribute = "saturate", .since = 19},
    {.op = "dequantize_linear", .attribute = "block_size", .since = 21},
    {.op = "dequantize_linear", .attribute = "output_dtype", .since = 23},
    {.op = "gru", .attribute = "layout", .since = 14},
    {.op = "lp_pool", .attribute = "ceil_mode", .since = 18},
    {.op = "lp_pool", .attribute = "dilations", .since = 18},
    {.op = "lstm", .attribute = "layout", .since = 14},
    {.op = "pad", .attribute = "", .input = 3, .since = 18},
    {.op = "pad", .attribute = "mode", .value = "wrap", .since = 19},
    {.op = "quantize_linear", .attribute = "block_size", .since = 21},
    {.op = "quantize_linear", .attribute = "output_dtype", .since = 21},
    {.op = "quantize_linear", .attribute = "precision", .since = 23},
    {.op = "quantize_linear", .attribute = "saturate", .since = 19},
    {.op = "reshape", .attribute = "allowzero", .since = 14},
    {.op = "resize", .attribute = "antialias", .since = 18},
    {.op = "resize", .attribute = "axes", .since = 18},
    {.op = "resize",
     .attribute = "coordinate_transformation_mode",
     .value = "half_pixel_symmetric",
     .since = 19},
    {.op = "resize", .attribute = "keep_aspect_ratio_policy", .since = 18},
    {.op = "rnn", .attribute = "layout", .since = 14},
    {.op = "scatter_elements", .attribute = "reduction", .since = 16},
    {.op = "scatter_elements", .attribute = "reduction", .value = "max", .since = 18},
    {.op = "scatter_elements", .attribute = "reduction", .value = "min", .since = 18},
    {.op = "scatter_nd", .attribute = "reduction", .since = 16},
    {.op = "scatter_nd", .attribute = "reduction", .value = "max", .since = 18},
    {.op = "scatter_nd", .attribute = "reduction", .value = "min", .since = 18},
    {.op = "shape", .attribute = "end", .since = 15, .parts = shape_in_parts},
    {.op = "shape", .attribute = "start", .since = 15, .parts = shape_in_parts},
};

bool uses(const Node& node, const LateFeature& feature) {
  if (feature.attribute.empty()) return node.has(feature.input);
  const auto stated = stated_attributes(node);
  return std::any_of(stated.begin(), stated.end(), [&](const auto& one) {
    if (one.first != feature.attribute) return false;
    const auto* text = std::get_if<std::string>(&one.second);
    return feature.value.empty() || (text && *text == feature.value);
  });
}

}  // namespace

const LateFeature* late_feature(const Node& node, int64_t opset) {
  const LateFeature* found = nullptr;
  for (const LateFeature& feature : kFeatures)
    if (feature.op == node.op->name && opset < feature.since &&
        (!found || feature.since > found->since) && uses(node, feature))
      found = &feature;
  return found;
}

int64_t first_opset(DType dtype) {
  switch (dtype) {
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz: return 19;
    case DType::i4:
    case DType::u4: return 21;
    case DType::f4e2m1: return 23;
    case DType::f8e8m0: return 24;
    case DType::i2:
    case DType::u2: return 25;
    default: return 1;
  }
}

}  // namespace dais::onnx
