#include <algorithm>

#include "onnx/import_scope.h"

namespace dais::onnx {
namespace {

/// Function bodies and subgraphs may multiply a small file; beyond this it is no model.
constexpr size_t kMaxInlinedNodes = 500'000;
constexpr size_t kMaxCallDepth = 64;

std::string in_quotes(std::string_view name) { return "'" + std::string(name) + "'"; }

/// What an OnnxRule sees of one node.
class NodeImport final : public OnnxImport {
 public:
  NodeImport(Importer& importer, Scope& scope, const NodeProto& node, int64_t version,
             Values inputs, const std::vector<BoundAttribute>& bound)
      : OnnxImport(scope.graph), importer_(importer), bound_(bound), label_(scope.prefix) {
    label_ += node_label(node);
    domain = plain_domain(node.domain);
    type = node.type;
    name = label_;
    opset = version;
    in = std::move(inputs);
    while (!in.empty() && in.back() == nullptr) in.pop_back();
    outputs = node.outputs.size();
    while (outputs > 1 && node.outputs[outputs - 1].empty()) --outputs;
    for (const auto& attribute : bound) {
      const auto kind = attribute.proto->kind;
      if (kind == AttributeProto::Kind::graph || kind == AttributeProto::Kind::type) continue;
      attributes.emplace_back(attribute.name, importer.attribute_value(*attribute.proto));
    }
  }

  using OnnxImport::region;
  ImportedRegion region(std::string_view attribute_name, std::vector<Type> hints) override {
    const auto* found = find(attribute_name, AttributeProto::Kind::graph);
    if (!found) fail("the subgraph " + in_quotes(attribute_name) + " is missing");
    return importer_.region(*found, hints);
  }
  bool has_region(std::string_view attribute_name) const override {
    return find(attribute_name, AttributeProto::Kind::graph) != nullptr;
  }
  std::optional<Type> type_attribute(std::string_view attribute_name) override {
    const auto* found = find(attribute_name, AttributeProto::Kind::type);
    if (!found || found->proto->types.empty()) return std::nullopt;
    return importer_.type_of(found->proto->types[0], graph, nullptr);
  }

 private:
  const BoundAttribute* find(std::string_view attribute_name, AttributeProto::Kind kind) const {
    for (const auto& attribute : bound_)
      if (attribute.name == attribute_name && attribute.proto->kind == kind) return &attribute;
    return nullptr;
  }

  Importer& importer_;
  const std::vector<BoundAttribute>& bound_;
  std::string label_;
};

/// One node of the op that owns the rule: same inputs, attributes by field name.
Values import_plainly(NodeImport& node, const Op& op) {
  std::shared_ptr<void> attrs = op.attrs->make();
  node.fill(*op.attrs, attrs.get(), false);
  return node.graph
      .add_node(op, Attrs(op.attrs, std::move(attrs)), node.in, std::max<size_t>(node.outputs, 1),
                std::string(node.name))
      .outs;
}

}  // namespace

AttrValue Importer::attribute_value(const AttributeProto& attribute) {
  using Kind = AttributeProto::Kind;
  switch (attribute.kind) {
    case Kind::number: return attribute.number;
    case Kind::integer: return attribute.integer;
    case Kind::text: return std::string(attribute.text);
    case Kind::numbers: return attribute.numbers;
    case Kind::integers: return attribute.integers;
    case Kind::texts: {
      return std::vector<std::string>(attribute.texts.begin(), attribute.texts.end());
    }
    case Kind::tensor:
      if (!attribute.tensors.empty()) return reader_.read(attribute.tensors[0]);
      break;
    case Kind::sparse_tensor:
      if (!attribute.sparse_tensors.empty()) return reader_.read(attribute.sparse_tensors[0]);
      break;
    default: break;
  }
  throw Error(Code::unsupported, "attribute " + in_quotes(attribute.name) +
                                     " has no value of a known kind (" +
                                     std::to_string(static_cast<int64_t>(attribute.kind)) + ")");
}

std::vector<BoundAttribute> Importer::bind_attributes(Scope& scope, const NodeProto& node) const {
  std::vector<BoundAttribute> out;
  for (const auto& attribute : node.attributes) {
    if (attribute.reference.empty()) {
      out.push_back({attribute.name, &attribute, &scope});
      continue;
    }
    if (!scope.frame)
      throw Error(Code::invalid_model, "attribute " + in_quotes(attribute.name) + " refers to " +
                                           in_quotes(attribute.reference) +
                                           " outside of a function");
    // An attribute that neither the call nor the function gives stays at the operator's default.
    for (const auto& given : scope.frame->attributes)
      if (given.name == attribute.reference)
        out.push_back({attribute.name, given.proto, given.scope});
  }
  return out;
}

Value* Importer::constant(Scope& scope, const std::vector<BoundAttribute>& attributes) {
  if (attributes.size() != 1)
    throw Error(Code::invalid_model, "Constant: exactly one attribute gives the value, there are " +
                                         std::to_string(attributes.size()));
  const AttrValue value = attribute_value(*attributes[0].proto);
  const auto tensor = [&]() -> Tensor {
    const auto list = [](const auto& values) {
      using T = typename std::decay_t<decltype(values)>::value_type;
      return Tensor::of<T>(Shape{static_cast<int64_t>(values.size())}, values);
    };
    if (auto* held = std::get_if<Tensor>(&value)) return *held;
    if (auto* held = std::get_if<float>(&value)) return Tensor::scalar(*held);
    if (auto* held = std::get_if<int64_t>(&value)) return Tensor::scalar(*held);
    if (auto* held = std::get_if<std::string>(&value)) return Tensor::scalar(*held);
    if (auto* held = std::get_if<std::vector<float>>(&value)) return list(*held);
    if (auto* held = std::get_if<std::vector<int64_t>>(&value)) return list(*held);
    return list(std::get<std::vector<std::string>>(value));
  };
  return scope.graph.add_constant(tensor());
}

ImportedRegion Importer::region(const BoundAttribute& attribute, const std::vector<Type>& hints) {
  if (attribute.proto->graphs.empty())
    throw Error(Code::invalid_model, "attribute " + in_quotes(attribute.name) + " holds no graph");
  const GraphProto& proto = attribute.proto->graphs[0];
  ImportedRegion out;
  out.graph = std::make_unique<Graph>();
  out.graph->name = proto.name;
  out.graph->nest_dims_in(attribute.scope->graph);
  Scope scope{*out.graph, attribute.scope, attribute.scope->frame};
  const size_t before = problems_.size();
  read_inputs(scope, proto, &hints);
  read_initializers(scope, proto);
  read_nodes(scope, proto.nodes);
  read_outputs(scope, proto);
  // The problems inside are reported already; the node around them cannot be made.
  if (problems_.size() > before || out.graph->outputs.size() != proto.outputs.size())
    throw Error(Code::cancelled, "a subgraph could not be read");
  out.captures = std::move(scope.captures);
  return out;
}

Values Importer::call_function(Scope& scope, const NodeProto& node, const FunctionProto& function,
                               const Values& inputs) {
  FunctionFrame frame{&function, scope.frame, bind_attributes(scope, node),
                      read_opsets(function.opsets), scope.frame ? scope.frame->depth + 1 : 1};
  for (const auto* at = scope.frame; at; at = at->caller)
    if (at->function == &function || frame.depth > kMaxCallDepth)
      throw Error(Code::invalid_model,
                  "function " + in_quotes(function.name) + " calls itself or nests too deeply");
  if (inputs.size() > function.inputs.size() || node.outputs.size() > function.outputs.size())
    throw Error(Code::invalid_model,
                "function " + in_quotes(function.name) + " has " +
                    std::to_string(function.inputs.size()) + " inputs and " +
                    std::to_string(function.outputs.size()) + " outputs, the call gives " +
                    std::to_string(inputs.size()) + " and " + std::to_string(node.outputs.size()));
  for (const auto& standard : function.defaults) {
    const bool given =
        std::any_of(frame.attributes.begin(), frame.attributes.end(),
                    [&](const BoundAttribute& at) { return at.name == standard.name; });
    if (!given) frame.attributes.push_back({standard.name, &standard, &scope});
  }
  Scope body{scope.graph, nullptr, &frame, scope.prefix + std::string(node_label(node)) + "/"};
  for (size_t i = 0; i < function.inputs.size(); ++i)
    body.bind(function.inputs[i], {i < inputs.size() ? inputs[i] : nullptr, false});
  read_nodes(body, function.nodes);
  Values out;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const auto* found = body.find(function.outputs[i]);
    if (!found)
      throw Error(Code::invalid_model, "function " + in_quotes(function.name) + " never makes " +
                                           in_quotes(function.outputs[i]));
    if (found->broken) throw Error(Code::cancelled, "a function body could not be read");
    out.push_back(found->value);
  }
  return out;
}

Values Importer::gradient(Scope& scope, const std::vector<BoundAttribute>& attributes,
                          const Values& inputs) {
  const auto value_of = [&](std::string_view name) {
    const auto* found = scope.find(name);
    if (!found)
      throw Error(Code::invalid_model, "nothing defines " + in_quotes(name) + ", which it names",
                  "", "Put the node behind what it differentiates");
    if (found->broken) throw Error(Code::cancelled, "a value that it names is broken");
    return found->value;
  };
  Values named;
  size_t count = 0;
  Value* y = nullptr;
  for (const std::string_view list : {"xs", "zs"})
    for (const auto& attribute : attributes) {
      if (attribute.name == "y") y = value_of(attribute.proto->text);
      if (attribute.name != list) continue;
      for (const auto& name : attribute.proto->texts) named.push_back(value_of(name));
      if (list == "xs") count = named.size();
    }
  if (!y || count == 0 || named.size() != inputs.size())
    throw Error(Code::invalid_model, "it must name y, and in xs and zs one value for each input");
  return expand_gradient(scope.graph, y, named, inputs, count);
}

Values Importer::import_node(Scope& scope, const NodeProto& node, Values inputs) {
  const auto attributes = bind_attributes(scope, node);
  const auto domain = plain_domain(node.domain);
  if (const FunctionProto* function = find_function(node))
    return call_function(scope, node, *function, inputs);
  if (domain.empty() && node.type == "Constant") return {constant(scope, attributes)};
  if (is_gradient(node)) return gradient(scope, attributes, inputs);
  const int64_t version = opset(opsets_of(scope), domain);
  const auto match = op_registry().match(domain, node.type, version);
  if (!match.rule) throw Error(Code::cancelled, "reported before");
  NodeImport import(*this, scope, node, version, std::move(inputs), attributes);
  return match.rule->import ? match.rule->import(import) : import_plainly(import, *match.op);
}

void Importer::read_node(Scope& scope, const NodeProto& node) {
  if (scope.frame && ++inlined_nodes_ > kMaxInlinedNodes)
    throw Error(Code::exhausted, "the functions of the model expand to more than " +
                                     std::to_string(kMaxInlinedNodes) + " nodes");
  Values inputs;
  bool broken = false;
  for (const auto name : node.inputs) {
    const auto* found = name.empty() ? nullptr : scope.find(name);
    if (!name.empty() && !found)
      throw Error(Code::invalid_model, "nothing defines its input " + in_quotes(name));
    broken |= found && found->broken;
    inputs.push_back(found ? found->value : nullptr);
  }
  if (broken) throw Error(Code::cancelled, "an input is broken");
  const Values results = import_node(scope, node, std::move(inputs));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (i >= results.size() || !results[i])
      throw Error(Code::unsupported, "its output " + std::to_string(i) + ", " +
                                         in_quotes(node.outputs[i]) + ", is not computed");
    const bool is_input = !results[i]->producer() && !results[i]->constant();
    if (!is_input && named_.insert(results[i]).second)
      scope.graph.rename(*results[i], scope.prefix + std::string(node.outputs[i]));
    scope.bind(node.outputs[i], {results[i], false});
  }
}

void Importer::read_nodes(Scope& scope, const std::vector<NodeProto>& nodes) {
  for (const size_t index : execution_order(nodes)) {
    const NodeProto& node = nodes[index];
    try {
      read_node(scope, node);
    } catch (const Error& error) {
      if (error.code() == Code::exhausted) throw;
      // Cancelled: what broke is reported where it broke.
      if (error.code() != Code::cancelled) {
        const std::string label = scope.prefix + std::string(node_label(node));
        const bool placed = error.where().find(label) != std::string::npos;
        report(placed
                   ? error
                   : error.at("node '" + label + "' (" + std::string(node.type) + ", opset " +
                              std::to_string(opset(opsets_of(scope), plain_domain(node.domain))) +
                              ")"));
      }
      for (const auto name : node.outputs)
        if (!name.empty()) scope.names[name] = {nullptr, true};
    }
  }
}

}  // namespace dais::onnx
