#pragma once

#include "ir/graph.h"

namespace dais {

/// A subgraph attribute, read with its own scope. Names of the outer scope that it uses are
/// `captures`: they follow the formal inputs in `graph->inputs`, in this order.
struct ImportedRegion {
  std::unique_ptr<Graph> graph;
  Values captures;
};

/// One ONNX node while it is being turned into graph nodes: what an OnnxRule's `import` sees.
class OnnxImport {
 public:
  virtual ~OnnxImport() = default;

  Graph& graph;
  std::string_view domain, type, name;
  int64_t opset;   ///< version of the node's domain
  Values in;       ///< nullptr where an optional input is left out
  size_t outputs;  ///< how many output names the node has (some may be empty)
  std::vector<std::pair<std::string, AttrValue>> attributes;  ///< all but subgraphs

  const AttrValue* attribute(std::string_view attribute_name) const;
  /// Typed access; throws `invalid_model` when the attribute is of another kind.
  int64_t integer(std::string_view attribute_name, int64_t otherwise) const;
  float number(std::string_view attribute_name, float otherwise) const;
  std::string text(std::string_view attribute_name, std::string_view otherwise) const;
  std::vector<int64_t> integers(std::string_view attribute_name) const;  ///< empty when absent
  std::vector<float> numbers(std::string_view attribute_name) const;
  bool has(size_t i) const { return i < in.size() && in[i] != nullptr; }
  Value* input(size_t i) const { return i < in.size() ? in[i] : nullptr; }

  /// Attributes of the same names as the struct's fields; others stay at their defaults.
  template <typename Struct>
  Struct attrs() const {
    Struct out;
    fill(AttrsOf<Struct>::info, &out, true);
    return out;
  }
  /// Sets fields from attributes. `lenient`: an attribute without a field is not an error.
  void fill(const AttrsInfo& info, void* attrs, bool lenient) const;

  Value* ints(std::span<const int64_t> values) { return graph.add_constant(Tensor::ints(values)); }
  Value* constant(Tensor tensor) { return graph.add_constant(std::move(tensor)); }
  /// A scalar constant of the element type of `like` (any numeric type).
  Value* scalar_like(double value, const Value* like);

  /// Adds a node named after the ONNX node, with this node's number of outputs.
  template <typename Struct>
  Values emit(Struct attrs, Values inputs, size_t count = 0) {
    return graph
        .add_node(std::move(attrs), std::move(inputs), count ? count : outputs, std::string(name))
        .outs;
  }

  /// Reads a subgraph attribute. `hints` are the types of its formal inputs where the file gives
  /// none; fewer than inputs are fine.
  virtual ImportedRegion region(std::string_view attribute_name, std::vector<Type> hints) = 0;
  ImportedRegion region(std::string_view attribute_name) { return region(attribute_name, {}); }
  virtual bool has_region(std::string_view attribute_name) const = 0;
  /// An attribute that is a type (of Optional), or nullopt.
  virtual std::optional<Type> type_attribute(std::string_view attribute_name) = 0;

  [[noreturn]] void fail(const std::string& problem, const std::string& remedy = {}) const;

 protected:
  explicit OnnxImport(Graph& target) : graph(target), opset(0), outputs(0) {}
};

}  // namespace dais
