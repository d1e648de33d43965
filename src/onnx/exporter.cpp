#include "onnx/exporter.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/onnx_export.h"

namespace dais::onnx {
namespace {

constexpr size_t kLargestProto = (size_t{1} << 31) - 1;

/// The oldest IR version that goes with an opset.
int64_t ir_version_for(int64_t opset) {
  constexpr struct {
    int64_t opset, ir;
  } kSteps[] = {{27, 14}, {25, 13}, {24, 12}, {23, 11}, {21, 10},
                {19, 9},  {15, 8},  {12, 7},  {11, 6},  {10, 5}};
  for (const auto& step : kSteps)
    if (opset >= step.opset) return step.ir;
  return 4;
}

/// Where tensors that stay out of the model file go, or nothing.
class ExternalFile {
 public:
  ExternalFile(const std::filesystem::path& folder, const ExportOptions& options)
      : name_(options.external_file), from_(options.external_from) {
    if (!name_.empty()) file_ = std::make_unique<AtomicFile>(folder / name_);
  }

  bool takes(const Tensor& tensor) const {
    return file_ && tensor.dtype() != DType::string && dtype_bits(tensor.dtype()) >= 8 &&
           tensor.bytes() >= from_;
  }

  void write(WireWriter& out, const Tensor& tensor, const std::string& name) {
    // Whole pages let a reader map large tensors one by one.
    file_->pad_to(tensor.bytes() >= (size_t{1} << 20) ? 4096 : 64);
    const uint64_t offset = file_->position();
    file_->write({static_cast<const uint8_t*>(tensor.raw()), tensor.bytes()});
    out.integers(1, tensor.shape().dims());
    out.integer(2, static_cast<int64_t>(tensor.dtype()));
    out.text(8, name);
    entry(out, "location", name_);
    entry(out, "offset", std::to_string(offset));
    entry(out, "length", std::to_string(tensor.bytes()));
    out.integer(14, 1);
  }

  void commit() {
    if (file_) file_->commit();
  }

 private:
  static void entry(WireWriter& out, std::string_view key, std::string_view value) {
    WireWriter nested;
    nested.text(1, key);
    nested.text(2, value);
    out.message(13, nested);
  }

  std::string name_;
  size_t from_;
  std::unique_ptr<AtomicFile> file_;
};

void write_dim(WireWriter& shape, const Dim& dim) {
  WireWriter out;
  if (dim.is_constant())
    out.integer(1, *dim.constant());
  else if (const auto text = dim.text(); text.find('?') == std::string::npos)
    out.text(2, text);
  shape.message(1, out);
}

void write_type(WireWriter& out, const Type& type) {
  WireWriter inner;
  if (type.is_tensor()) {
    inner.integer(1, static_cast<int64_t>(type.dtype));
    if (type.shape) {
      WireWriter shape;
      for (const Dim& dim : *type.shape) write_dim(shape, dim);
      inner.message(2, shape);
    }
    return out.message(1, inner);
  }
  WireWriter element;
  write_type(element, *type.element);
  const bool map = type.kind == Type::Kind::map;
  if (map) inner.integer(1, static_cast<int64_t>(type.dtype));
  inner.message(map ? 2 : 1, element);
  out.message(map ? 5 : type.kind == Type::Kind::sequence ? 4 : 9, inner);
}

void write_value_info(WireWriter& graph, uint32_t field, const std::string& name,
                      const Type& type) {
  WireWriter out;
  out.text(1, name);
  if (!type.is_tensor() || type.dtype != DType::undefined) {
    WireWriter nested;
    write_type(nested, type);
    out.message(2, nested);
  }
  graph.message(field, out);
}

void write_attribute(WireWriter& node, std::string_view name, const AttrValue& value) {
  WireWriter out;
  out.text(1, name);
  using Kind = AttributeProto::Kind;
  const auto kind = [&](Kind which) { out.integer(20, static_cast<int64_t>(which)); };
  if (auto* number = std::get_if<int64_t>(&value)) {
    out.integer(3, *number);
    kind(Kind::integer);
  } else if (auto* real = std::get_if<float>(&value)) {
    out.number(2, *real);
    kind(Kind::number);
  } else if (auto* text = std::get_if<std::string>(&value)) {
    out.text(4, *text);
    kind(Kind::text);
  } else if (auto* integers = std::get_if<std::vector<int64_t>>(&value)) {
    for (const int64_t one : *integers) out.integer(8, one);
    kind(Kind::integers);
  } else if (auto* numbers = std::get_if<std::vector<float>>(&value)) {
    for (const float one : *numbers) out.number(7, one);
    kind(Kind::numbers);
  } else if (auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    for (const auto& one : *texts) out.text(9, one);
    kind(Kind::texts);
  } else if (auto* tensor = std::get_if<Tensor>(&value)) {
    WireWriter nested;
    write_tensor(nested, *tensor, {});
    out.message(5, nested);
    kind(Kind::tensor);
  }
  node.message(5, out);
}

/// Names of the values of one graph, and of the constants around it.
struct Names {
  const Names* outer = nullptr;
  std::unordered_map<const Value*, std::string> values = {};
  std::unordered_map<const void*, const Value*> constants = {};

  /// A constant of this graph or one around it with the same elements.
  const std::string* find_constant(const Tensor& tensor) const {
    if (const auto found = constants.find(tensor.raw()); found != constants.end()) {
      const Tensor& held = *found->second->constant();
      if (held.dtype() == tensor.dtype() && held.shape() == tensor.shape())
        return &values.at(found->second);
    }
    return outer ? outer->find_constant(tensor) : nullptr;
  }
};

class GraphWriter {
 public:
  GraphWriter(const ExportOptions& options, ExternalFile& external)
      : options_(options), external_(external) {}

  /// A whole graph (outer == nullptr) or the body of a node, whose last inputs are `captures`.
  void write(WireWriter& out, const Graph& graph, const Names* outer,
             const std::vector<std::string>& captures, const std::vector<std::string>& outputs,
             const std::unordered_set<std::string>& defaults);
  const std::unordered_set<std::string_view>& domains() const { return domains_; }

 private:
  std::string unique(const std::string& wanted);
  void write_constants(WireWriter& out, const Graph& graph, Names& names);
  void write_node(WireWriter& out, const Node& node, Names& names);
  void write_region(WireWriter& node, const OnnxNode::Region& region, const Names& names);
  void write_outputs(WireWriter& out, const Graph& graph, Names& names,
                     const std::vector<std::string>& outputs);

  const ExportOptions& options_;
  ExternalFile& external_;
  std::unordered_set<std::string> taken_;
  std::unordered_set<std::string_view> domains_;
};

std::string GraphWriter::unique(const std::string& wanted) {
  std::string name = wanted.empty() ? "value" : wanted;
  for (int number = 1; !taken_.insert(name).second; ++number)
    name = (wanted.empty() ? "value" : wanted) + "_" + std::to_string(number);
  return name;
}

void GraphWriter::write_constants(WireWriter& out, const Graph& graph, Names& names) {
  for (const auto& value : graph.values()) {
    const Tensor* tensor = value->constant();
    const bool needed = tensor && (!value->users().empty() || graph.is_output(value.get()));
    if (!needed) continue;
    const std::string* known = tensor->bytes() ? names.find_constant(*tensor) : nullptr;
    if (known) {
      names.values[value.get()] = *known;
      continue;
    }
    const std::string name = unique(value->name);
    names.values[value.get()] = name;
    names.constants[tensor->raw()] = value.get();
    WireWriter nested;
    if (external_.takes(*tensor))
      external_.write(nested, *tensor, name);
    else
      write_tensor(nested, *tensor, name);
    out.message(5, nested);
  }
}

OnnxNode onnx_node(const Node& node, int64_t opset) {
  const OnnxRule* rule = export_rule(*node.op, opset);
  DAIS_CHECK(rule != nullptr);
  if (rule->export_as) {
    OnnxNode out = rule->export_as(node, opset);
    if (out.type.empty()) out.type = rule->type;
    if (out.domain.empty()) out.domain = rule->domain;
    return out;
  }
  OnnxNode out = export_plainly(node, opset);
  out.type = rule->type;
  out.domain = rule->domain;
  return out;
}

void GraphWriter::write_region(WireWriter& node, const OnnxNode::Region& region,
                               const Names& names) {
  std::vector<std::string> captures;
  for (const Value* value : region.captures) captures.push_back(names.values.at(value));
  WireWriter graph, attribute;
  write(graph, *region.graph, &names, captures, {}, {});
  attribute.text(1, region.attribute);
  attribute.message(6, graph);
  attribute.integer(20, static_cast<int64_t>(AttributeProto::Kind::graph));
  node.message(5, attribute);
}

void GraphWriter::write_node(WireWriter& out, const Node& node, Names& names) {
  const OnnxNode form = onnx_node(node, options_.opset);
  WireWriter proto;
  size_t inputs = form.in.size();
  while (inputs > 0 && !form.in[inputs - 1]) --inputs;
  for (size_t i = 0; i < inputs; ++i)
    proto.text(1, form.in[i] ? names.values.at(form.in[i]) : std::string());
  for (const Value* value : node.outs) {
    auto& name = names.values[value];
    if (name.empty()) name = unique(value->name);
    proto.text(2, name);
  }
  proto.text(3, node.name);
  proto.text(4, form.type);
  for (const auto& [name, value] : form.attributes) write_attribute(proto, name, value);
  for (const auto& [name, type] : form.types) {
    WireWriter nested, attribute;
    write_type(nested, type);
    attribute.text(1, name);
    attribute.message(14, nested);
    attribute.integer(20, static_cast<int64_t>(AttributeProto::Kind::type));
    proto.message(5, attribute);
  }
  for (const auto& region : form.regions) write_region(proto, region, names);
  if (!form.domain.empty()) proto.text(7, form.domain);
  domains_.insert(export_rule(*node.op, options_.opset)->domain);
  out.message(1, proto);
}

/// ONNX wants every output to be made by a node of the same graph, under a name of its own.
void GraphWriter::write_outputs(WireWriter& out, const Graph& graph, Names& names,
                                const std::vector<std::string>& outputs) {
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const Value* value = graph.outputs[i];
    const std::string& made = names.values.at(value);
    std::string name = i < outputs.size() ? outputs[i] : made;
    const bool repeated =
        std::find(graph.outputs.begin(), graph.outputs.begin() + static_cast<std::ptrdiff_t>(i),
                  value) != graph.outputs.begin() + static_cast<std::ptrdiff_t>(i);
    if (name != made || !value->producer() || repeated) {
      if (i >= outputs.size()) name = unique(made);
      WireWriter identity;
      identity.text(1, made);
      identity.text(2, name);
      identity.text(4, "Identity");
      out.message(1, identity);
      domains_.insert("");
    }
    write_value_info(out, 12, name, value->type);
  }
}

void GraphWriter::write(WireWriter& out, const Graph& graph, const Names* outer,
                        const std::vector<std::string>& captures,
                        const std::vector<std::string>& outputs,
                        const std::unordered_set<std::string>& defaults) {
  Names names{outer};
  const size_t formals = graph.inputs.size() - captures.size();
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value* input = graph.inputs[i];
    names.values[input] = i < formals ? unique(input->name) : captures[i - formals];
    if (i < formals) write_value_info(out, 11, names.values[input], input->type);
  }
  // Outputs get their names before anything else may take them.
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Value* value = graph.outputs[i];
    const bool fresh = taken_.insert(outputs[i]).second;
    if (fresh && value->producer() && names.values[value].empty()) names.values[value] = outputs[i];
  }
  write_constants(out, graph, names);
  for (const auto& value : graph.values())
    if (value->constant() && defaults.contains(value->name) && names.values.contains(value.get()))
      write_value_info(out, 11, names.values[value.get()], value->type);
  for (const auto& node : graph.nodes()) write_node(out, *node, names);
  out.text(2, graph.name.empty() ? "graph" : graph.name);
  write_outputs(out, graph, names, outputs);
}

void write_opset(WireWriter& out, std::string_view domain, int64_t version) {
  WireWriter nested;
  nested.text(1, domain);
  nested.integer(2, version);
  out.message(8, nested);
}

/// `graph` is the model's, in ONNX operators already.
WireWriter write_model(const Model& model, const Graph& graph, const ExportOptions& options,
                       ExternalFile& external) {
  std::unordered_set<std::string> defaults;
  for (const auto& [name, tensor] : model.defaults) defaults.insert(name);
  WireWriter out, body;
  GraphWriter writer(options, external);
  writer.write(body, graph, nullptr, {}, model.outputs, defaults);
  out.integer(1, ir_version_for(options.opset));
  out.text(2, "dais");
  if (!model.domain.empty()) out.text(4, model.domain);
  if (model.model_version) out.integer(5, model.model_version);
  if (!model.doc.empty()) out.text(6, model.doc);
  out.message(7, body);
  write_opset(out, "", options.opset);
  for (const auto domain : writer.domains())
    if (!domain.empty()) write_opset(out, domain, newest_opset(domain));
  for (const auto& [key, value] : model.metadata) {
    WireWriter entry;
    entry.text(1, key);
    entry.text(2, value);
    out.message(14, entry);
  }
  if (out.size() > kLargestProto)
    throw Error(Code::unsupported,
                "the model takes " + std::to_string(out.size()) +
                    " bytes; one ONNX file holds less than 2 GiB",
                "", "Put its weights into a second file with --external-data");
  return out;
}

std::unique_ptr<Graph> lowered(const Model& model, const ExportOptions& options) {
  auto graph = model.graph->clone();
  lower_to_onnx(*graph, options.opset);
  graph->remove_dead();
  return graph;
}

}  // namespace

std::string export_model(const Model& model, const ExportOptions& options) {
  DAIS_CHECK(options.external_file.empty());
  const auto graph = lowered(model, options);
  ExternalFile none({}, options);
  return write_model(model, *graph, options, none).data();
}

void save_model(const Model& model, const std::filesystem::path& path,
                const ExportOptions& options) {
  const auto graph = lowered(model, options);
  ExternalFile external(path.parent_path(), options);
  const WireWriter bytes = write_model(model, *graph, options, external);
  external.commit();
  AtomicFile file(path);
  bytes.write_to(file);
  file.commit();
}

}  // namespace dais::onnx
