#pragma once

#include "ir/graph.h"

namespace dais::onnx {

/// Something that an operator learnt in a later version than the one in which it appeared.
struct LateFeature {
  std::string_view op;         ///< our name
  std::string_view attribute;  ///< "" for an input
  size_t input = 0;
  std::string_view value = "";  ///< of a text attribute; "" for any that is not the default
  int64_t since = 1;
  /// The node in older terms; nullptr where there are none.
  Values (*parts)(Graph&, const Node&) = nullptr;
};

/// The newest feature that a node uses and that `opset` does not have; nullptr when there is none.
const LateFeature* late_feature(const Node& node, int64_t opset);

/// The opset in which ONNX got an element type.
int64_t first_opset(DType dtype);

}  // namespace dais::onnx
