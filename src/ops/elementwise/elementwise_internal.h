#pragma once

#include "ops/elementwise/elementwise.h"

namespace dais {

/// Which element types a function takes.
enum ElementKinds : uint8_t { real = 1, whole = 2, boolean = 4, text = 8, other = 16 };
constexpr ElementKinds operator|(ElementKinds a, ElementKinds b) {
  return static_cast<ElementKinds>(static_cast<int>(a) | static_cast<int>(b));
}

/// One line of the family's table.
struct ElementwiseRow {
  Scalar function;
  const Op* op;
  std::string_view name, onnx;
  int since;  ///< first ONNX version
  ElementKinds kinds;
  int operands;          ///< 0: any number
  bool logical = false;  ///< the result is boolean whatever the operands are
  void (*parameters)(const void* attrs, ScalarCall& call) = nullptr;
};
std::span<const ElementwiseRow> elementwise_rows();
const ElementwiseRow* elementwise_row(const Op& op);
const ElementwiseRow* elementwise_row(std::string_view onnx_name);

void infer_elementwise(Inference& c);
void reference_elementwise(Call& c);
Values gradient_elementwise(Graph& g, const Node& n, std::span<Value* const> dy);
std::vector<OnnxRule> elementwise_onnx_rules(const ElementwiseRow& row);
/// How functions that ONNX named late are made of older ones; nullptr for all others.
using ElementwiseParts = Values (*)(Graph&, const Node&);
ElementwiseParts elementwise_parts(Scalar function);
/// Gives a value `count` further axes of size 1 at its end.
Value* append_axes(Graph& graph, Value* value, size_t count);
/// Rules of ONNX operators that are built from several nodes.
void add_elementwise_rules(OpRegistry& registry);

}  // namespace dais
