#include "onnx/importer.h"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "onnx/import_scope.h"

namespace dais::onnx {

Importer::Importer(const ModelProto& model, TensorReader& reader, const ImportOptions& options)
    : model_(model), reader_(reader), options_(options), opsets_(read_opsets(model.opsets)) {
  if (model.ir_version < kOldestIr || model.ir_version > kNewestIr)
    throw Error(Code::unsupported,
                "IR version " + std::to_string(model.ir_version) + " is not one of " +
                    std::to_string(kOldestIr) + " to " + std::to_string(kNewestIr),
                "", "Save the model again with a current version of its exporter");
  if (!model.graph) throw Error(Code::invalid_model, "the file holds no graph");
  for (const auto& function : model.functions) {
    const FunctionKey key{plain_domain(function.domain), function.name, function.overload};
    if (!functions_.emplace(key, &function).second)
      throw Error(Code::invalid_model, "two functions have the same name",
                  "function '" + std::string(function.name) + "'");
  }
}

void Importer::read_initializers(Scope& scope, const GraphProto& proto) {
  const auto add = [&](std::string_view name, const auto& stored) {
    if (scope.names.contains(name) && scope.names[name].value && scope.outer == nullptr &&
        options_.overrides.contains(std::string(name)))
      return;
    try {
      Value* value = scope.graph.add_constant(reader_.read(stored), std::string(name));
      scope.bind(name, {value, false});
    } catch (const Error& error) {
      report(error.where().empty() ? error.at("initialiser '" + std::string(name) + "'") : error);
      scope.names[name] = {nullptr, true};
    }
  };
  for (const auto& tensor : proto.initializers) add(tensor.name, tensor);
  for (const auto& tensor : proto.sparse_initializers) add(tensor.values.name, tensor);
}

namespace {

/// Products of sums grow exponentially when they are multiplied out: only short ones are taken as
/// expressions, others are names.
Dim dim_of(std::string_view text) {
  constexpr auto kMostProducts = 4;
  return std::count(text.begin(), text.end(), '*') > kMostProducts ? Dim::symbol(std::string(text))
                                                                   : Dim::parse(text);
}

}  // namespace

Type Importer::type_of(const TypeProto& proto, Graph& graph, const Type* hint) const {
  const auto dtype = [&] {
    const auto found = dtype_from_onnx(proto.element_type);
    if (!found)
      throw Error(Code::unsupported, "element type " + std::to_string(proto.element_type) +
                                         " is not one of ONNX up to IR version 14");
    return *found;
  };
  const auto element = [&] {
    if (proto.element.empty())
      throw Error(Code::invalid_model, "a type does not say what it holds");
    return type_of(proto.element[0], graph, nullptr);
  };
  switch (proto.kind) {
    case TypeProto::Kind::missing: return hint ? *hint : Type::tensor(DType::undefined);
    case TypeProto::Kind::sequence: return Type::sequence(element());
    case TypeProto::Kind::optional: return Type::optional(element());
    case TypeProto::Kind::map: return Type::map(dtype(), element());
    case TypeProto::Kind::opaque: throw Error(Code::unsupported, "opaque types are not supported");
    case TypeProto::Kind::tensor:
    case TypeProto::Kind::sparse_tensor: break;
  }
  Type out = Type::tensor(dtype());
  if (!proto.shape) return out;
  if (proto.shape->size() > kMaxRank)
    throw Error(Code::unsupported, "a type has more than " + std::to_string(kMaxRank) + " axes");
  out.shape.emplace();
  for (const auto& dim : *proto.shape) {
    if (dim.value && *dim.value >= 0)
      out.shape->push_back(*dim.value);
    else if (dim.value || dim.param.empty() || dim.param[0] == '?')
      out.shape->push_back(graph.fresh_dim());
    else
      out.shape->push_back(dim_of(dim.param));
  }
  return out;
}

void Importer::read_inputs(Scope& scope, const GraphProto& proto, const std::vector<Type>* hints) {
  std::unordered_set<std::string_view> stored;
  for (const auto& tensor : proto.initializers) stored.insert(tensor.name);
  for (const auto& tensor : proto.sparse_initializers) stored.insert(tensor.values.name);
  for (size_t i = 0; i < proto.inputs.size(); ++i) {
    const auto& input = proto.inputs[i];
    const std::string name(input.name);
    const bool top = scope.outer == nullptr;
    if (name.empty()) throw Error(Code::invalid_model, "an input has no name", scope.graph.name);
    if (stored.contains(input.name) && !(top && options_.overrides.contains(name))) continue;
    const Type* hint = hints && i < hints->size() ? &(*hints)[i] : nullptr;
    try {
      Type type = type_of(input.type, scope.graph, hint);
      if (top && type.is_tensor() && type.dtype == DType::undefined)
        throw Error(Code::invalid_model, "it has no element type");
      scope.bind(input.name, {scope.graph.add_input(std::move(type), name), false});
    } catch (const Error& error) {
      throw error.at("input '" + name + "'");
    }
  }
}

void Importer::read_outputs(Scope& scope, const GraphProto& proto) {
  for (const auto& output : proto.outputs) {
    const auto* found = scope.find(output.name);
    if (!found) {
      report(Error(Code::invalid_model,
                   "no node makes the output '" + std::string(output.name) + "'",
                   "graph '" + scope.graph.name + "'"));
      continue;
    }
    if (!found->broken) scope.graph.outputs.push_back(found->value);
  }
}

void Importer::throw_problems() const {
  if (problems_.empty()) return;
  if (problems_.size() == 1) throw Error(problems_.front());
  std::string list = std::to_string(problems_.size()) + " problems";
  Code code = Code::unsupported;
  size_t number = 0;
  for (const Error& problem : problems_) {
    if (problem.code() != Code::unsupported) code = Code::invalid_model;
    list += (number ? "; " : ": ") + std::to_string(number + 1) + ") " + problem.what();
    ++number;
  }
  throw Error(code, list);
}

Model Importer::run() {
  Model out;
  const GraphProto& proto = *model_.graph;
  out.graph = std::make_unique<Graph>();
  out.graph->name = proto.name;
  check_support();
  Scope scope{*out.graph};
  read_inputs(scope, proto, nullptr);
  read_initializers(scope, proto);
  for (const auto& input : proto.inputs)
    if (const auto* found = scope.find(input.name); found && found->value)
      if (const Tensor* constant = found->value->constant())
        out.defaults.emplace_back(input.name, *constant);
  read_nodes(scope, proto.nodes);
  read_outputs(scope, proto);
  throw_problems();
  for (const auto& input : proto.inputs) out.inputs.emplace_back(input.name);
  for (size_t i = 0; i < proto.outputs.size(); ++i) {
    out.outputs.emplace_back(proto.outputs[i].name);
    const Type* inferred = &out.graph->outputs[i]->type;
    out.output_types.push_back(type_of(proto.outputs[i].type, *out.graph, inferred));
  }
  out.ir_version = model_.ir_version;
  out.model_version = model_.model_version;
  out.opsets = {opsets_.begin(), opsets_.end()};
  out.producer = model_.producer_name;
  if (!model_.producer_version.empty()) out.producer += " " + std::string(model_.producer_version);
  out.domain = model_.domain;
  out.doc = model_.doc;
  for (const auto& [key, value] : model_.metadata) out.metadata.emplace(key, value);
  out.functions = model_.functions.size();
  return out;
}

namespace {

Model import_with(Bytes bytes, TensorReader reader, const ImportOptions& options) {
  try {
    const ModelProto proto = parse_model(bytes);
    return Importer(proto, reader, options).run();
  } catch (const std::bad_alloc&) {
    throw Error(Code::exhausted, "no memory to read the model");
  } catch (const std::length_error&) {
    throw Error(Code::exhausted, "the model asks for a list longer than memory");
  }
}

}  // namespace

Model import_model(const std::filesystem::path& path, const ImportOptions& options) {
  const auto file = MappedFile::open(path);
  try {
    return import_with(file->bytes(), TensorReader(file, path.parent_path()), options);
  } catch (const Error& error) {
    throw error.at(path.filename().string());
  }
}

Model import_model(Bytes bytes, std::shared_ptr<const void> owner, const ImportOptions& options) {
  return import_with(bytes, TensorReader(std::move(owner)), options);
}

}  // namespace dais::onnx
