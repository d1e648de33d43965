#include "onnx/import_scope.h"

#include <algorithm>
#include <queue>

namespace dais::onnx {
namespace {

/// Names that a node reads: its inputs and what its subgraphs take from outside.
void collect_reads(const NodeProto& node, std::vector<std::string_view>& out) {
  for (const auto name : node.inputs)
    if (!name.empty()) out.push_back(name);
  for (const auto& attribute : node.attributes) {
    for (const auto& graph : attribute.graphs) {
      std::unordered_set<std::string_view> inside;
      for (const auto& input : graph.inputs) inside.insert(input.name);
      for (const auto& tensor : graph.initializers) inside.insert(tensor.name);
      std::vector<std::string_view> reads;
      for (const auto& inner : graph.nodes) {
        collect_reads(inner, reads);
        inside.insert(inner.outputs.begin(), inner.outputs.end());
      }
      for (const auto& output : graph.outputs) reads.push_back(output.name);
      for (const auto name : reads)
        if (!inside.contains(name)) out.push_back(name);
    }
  }
}

}  // namespace

const Scope::Binding* Scope::find(std::string_view name) {
  if (auto found = names.find(name); found != names.end()) return &found->second;
  const Binding* around = outer ? outer->find(name) : nullptr;
  if (!around || around->broken) return around;
  Value* inner;
  if (const Tensor* constant = around->value->constant()) {
    inner = graph.add_constant(*constant, std::string(name));
  } else {
    inner = graph.add_input(around->value->type, std::string(name));
    inner->set_known(around->value->known());
    captures.push_back(around->value);
  }
  return &(names[name] = {inner, false});
}

void Scope::bind(std::string_view name, Binding binding) {
  if (names.contains(name))
    throw Error(Code::invalid_model, "the name '" + std::string(name) + "' is defined twice",
                graph.name, "Every value of a graph needs a name of its own");
  names[name] = binding;
}

std::vector<size_t> execution_order(const std::vector<NodeProto>& nodes) {
  std::unordered_map<std::string_view, size_t> producer;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const auto name : nodes[i].outputs)
      if (!name.empty()) producer.emplace(name, i);
  std::vector<std::vector<size_t>> readers(nodes.size());
  std::vector<size_t> waiting(nodes.size(), 0);
  std::vector<std::string_view> reads;
  for (size_t i = 0; i < nodes.size(); ++i) {
    reads.clear();
    collect_reads(nodes[i], reads);
    for (const auto name : reads) {
      const auto found = producer.find(name);
      if (found == producer.end()) continue;
      readers[found->second].push_back(i);
      ++waiting[i];
    }
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (waiting[i] == 0) ready.push(i);
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t at = ready.top();
    ready.pop();
    order.push_back(at);
    for (const size_t reader : readers[at])
      if (--waiting[reader] == 0) ready.push(reader);
  }
  if (order.size() < nodes.size()) {
    const auto stuck = std::find_if(waiting.begin(), waiting.end(), [](size_t n) { return n > 0; });
    const auto& node = nodes[static_cast<size_t>(stuck - waiting.begin())];
    throw Error(Code::invalid_model, "the nodes form a cycle",
                "node '" + std::string(node_label(node)) + "'");
  }
  return order;
}

std::string_view plain_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

std::string_view shown_domain(std::string_view domain) {
  return domain.empty() ? std::string_view("ai.onnx") : domain;
}

std::string_view node_label(const NodeProto& node) {
  if (!node.name.empty()) return node.name;
  for (const auto name : node.outputs)
    if (!name.empty()) return name;
  return node.type;
}

Opsets read_opsets(const std::vector<OpsetId>& ids) {
  Opsets out;
  for (const auto& id : ids) {
    auto& version = out[std::string(plain_domain(id.domain))];
    version = std::max(version, id.version);
  }
  return out;
}

}  // namespace dais::onnx
