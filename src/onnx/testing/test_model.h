#pragma once

#include "onnx/importer.h"

/// A few lines that build the messages of small test models.
namespace dais::onnx::testing {

struct Attribute {
  std::string name;
  AttrValue value;
  std::string reference = {};
};

struct TestNode {
  std::string type;
  std::vector<std::string> inputs, outputs;
  std::vector<Attribute> attributes = {};
  std::string domain = {};
  std::string graph_name = {}, graph = {};  ///< a subgraph attribute and its GraphProto
};

inline std::string node_proto(const TestNode& node) {
  WireWriter out;
  for (const auto& name : node.inputs) out.text(1, name);
  for (const auto& name : node.outputs) out.text(2, name);
  out.text(4, node.type);
  for (const auto& attribute : node.attributes) {
    WireWriter nested;
    nested.text(1, attribute.name);
    if (!attribute.reference.empty()) nested.text(21, attribute.reference);
    if (auto* number = std::get_if<int64_t>(&attribute.value)) {
      nested.integer(3, *number);
      nested.integer(20, 2);
    }
    out.message(5, nested);
  }
  if (!node.graph_name.empty()) {
    WireWriter nested;
    nested.text(1, node.graph_name);
    nested.text(6, node.graph);
    nested.integer(20, 5);
    out.message(5, nested);
  }
  out.text(7, node.domain);
  return out.data();
}

inline std::string value_info(const std::string& name, DType dtype,
                              const std::vector<std::string>& dims) {
  WireWriter shape;
  for (const auto& dim : dims) {
    WireWriter nested;
    if (std::isdigit(static_cast<unsigned char>(dim[0])))
      nested.integer(1, std::stoll(dim));
    else
      nested.text(2, dim);
    shape.message(1, nested);
  }
  WireWriter tensor, type, out;
  tensor.integer(1, static_cast<int64_t>(dtype));
  tensor.message(2, shape);
  type.message(1, tensor);
  out.text(1, name);
  out.message(2, type);
  return out.data();
}

struct TestGraph {
  std::vector<TestNode> nodes;
  std::vector<std::string> inputs;  ///< ValueInfoProtos, or bare names of untyped inputs
  std::vector<std::string> outputs;
  std::vector<std::pair<std::string, Tensor>> initializers = {};
};

inline std::string graph_proto(const TestGraph& graph) {
  WireWriter out;
  for (const auto& node : graph.nodes) out.text(1, node_proto(node));
  out.text(2, "test");
  for (const auto& [name, tensor] : graph.initializers) {
    WireWriter nested;
    write_tensor(nested, tensor, name);
    out.message(5, nested);
  }
  for (const auto& input : graph.inputs) out.text(11, input);
  for (const auto& name : graph.outputs) {
    WireWriter nested;
    nested.text(1, name);
    out.message(12, nested);
  }
  return out.data();
}

inline std::string model_proto(const TestGraph& graph, int64_t opset = 21,
                               const std::vector<std::string>& functions = {}) {
  WireWriter out, imported;
  out.integer(1, 10);
  imported.integer(2, opset);
  out.message(8, imported);
  out.text(7, graph_proto(graph));
  for (const auto& function : functions) out.text(25, function);
  return out.data();
}

struct TestFunction {
  std::string name;
  std::vector<std::string> inputs, outputs, attributes;
  std::vector<TestNode> nodes;
};

inline std::string function_proto(const TestFunction& function) {
  WireWriter out, imported;
  out.text(1, function.name);
  for (const auto& name : function.inputs) out.text(4, name);
  for (const auto& name : function.outputs) out.text(5, name);
  for (const auto& name : function.attributes) out.text(6, name);
  for (const auto& node : function.nodes) out.text(7, node_proto(node));
  imported.integer(2, 21);
  out.message(9, imported);
  out.text(10, "local");
  return out.data();
}

inline Model import_text(const std::string& bytes) {
  return import_model(Bytes{reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

}  // namespace dais::onnx::testing
