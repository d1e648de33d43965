#pragma once

#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "ir/onnx_import.h"
#include "onnx/importer.h"

/// Internals of the importer: how names of a file are resolved while nodes are read.
namespace dais::onnx {

using Opsets = std::map<std::string, int64_t, std::less<>>;

struct Scope;

/// An attribute as a node sees it: under its own name, and with the scope that the names inside its
/// subgraph belong to (attributes may be handed through function calls).
struct BoundAttribute {
  std::string_view name;
  const AttributeProto* proto = nullptr;
  Scope* scope = nullptr;
};

/// One call of a model-local function that is being inlined.
struct FunctionFrame {
  const FunctionProto* function = nullptr;
  const FunctionFrame* caller = nullptr;
  std::vector<BoundAttribute> attributes;
  Opsets opsets;
  size_t depth = 1;
};

/// The names visible to the nodes of one graph, subgraph or function body.
struct Scope {
  struct Binding {
    Value* value = nullptr;
    bool broken = false;  ///< its node could not be imported; what uses it is skipped silently
  };

  Graph& graph;
  Scope* outer = nullptr;                ///< subgraphs see the names around them
  const FunctionFrame* frame = nullptr;  ///< set inside function bodies
  std::string prefix = {};               ///< of names that come from an inlined function
  std::unordered_map<std::string_view, Binding> names = {};
  Values captures = {};  ///< values of `outer` that became inputs of `graph`

  /// Finds a name here or outside; an outside value becomes an input (a constant: a copy that
  /// shares the elements). nullptr when nobody defines it.
  const Binding* find(std::string_view name);
  /// Throws `invalid_model` when the name is taken in this very scope.
  void bind(std::string_view name, Binding binding);
};

/// The indices of nodes so that each comes after the producers of what it reads, otherwise in file
/// order. Throws `invalid_model` naming a node of a cycle.
std::vector<size_t> execution_order(const std::vector<NodeProto>& nodes);

/// "" for the default domain, whichever way it is written.
std::string_view plain_domain(std::string_view domain);
std::string_view shown_domain(std::string_view domain);
std::string_view node_label(const NodeProto& node);

Opsets read_opsets(const std::vector<OpsetId>& ids);

/// Whether a node is the Gradient operator, which refers to values by name.
bool is_gradient(const NodeProto& node);
/// Its outputs: gradients of `y` with respect to the first `count` of `named`, where these have the
/// values `given`.
Values expand_gradient(Graph& graph, Value* y, const Values& named, const Values& given,
                       size_t count);

/// Reads one model; lives for one import_model call.
class Importer {
 public:
  Importer(const ModelProto& model, TensorReader& reader, const ImportOptions& options);
  Model run();

  /// A subgraph attribute of a node in some scope.
  ImportedRegion region(const BoundAttribute& attribute, const std::vector<Type>& hints);
  AttrValue attribute_value(const AttributeProto& attribute);
  Type type_of(const TypeProto& proto, Graph& graph, const Type* hint) const;

 private:
  using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view>;

  void read_initializers(Scope& scope, const GraphProto& proto);
  void read_inputs(Scope& scope, const GraphProto& proto, const std::vector<Type>* hints);
  void read_nodes(Scope& scope, const std::vector<NodeProto>& nodes);
  void read_outputs(Scope& scope, const GraphProto& proto);
  void read_node(Scope& scope, const NodeProto& node);
  Values import_node(Scope& scope, const NodeProto& node, Values inputs);
  Values call_function(Scope& scope, const NodeProto& node, const FunctionProto& function,
                       const Values& inputs);
  Values gradient(Scope& scope, const std::vector<BoundAttribute>& attributes,
                  const Values& inputs);
  Value* constant(Scope& scope, const std::vector<BoundAttribute>& attributes);
  std::vector<BoundAttribute> bind_attributes(Scope& scope, const NodeProto& node) const;

  const FunctionProto* find_function(const NodeProto& node) const;
  int64_t opset(const Opsets& opsets, std::string_view domain) const;
  const Opsets& opsets_of(const Scope& scope) const;
  void check_support();
  void check_nodes(const std::vector<NodeProto>& nodes, const Opsets& opsets,
                   std::vector<const FunctionProto*>& called);
  void check_node(const NodeProto& node, const Opsets& opsets);
  void report(const Error& error) { problems_.push_back(error); }
  void throw_problems() const;

  const ModelProto& model_;
  TensorReader& reader_;
  const ImportOptions& options_;
  Opsets opsets_;
  std::map<FunctionKey, const FunctionProto*> functions_;
  std::vector<std::pair<std::string, Tensor>> defaults_;
  std::unordered_set<const Value*> named_;
  std::map<std::string, size_t> unsupported_;  ///< operator → index in problems_
  std::map<std::string, size_t> occurrences_;
  std::vector<Error> problems_;
  size_t inlined_nodes_ = 0;
};

}  // namespace dais::onnx
