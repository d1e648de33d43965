#include <unordered_map>

#include "ir/reference.h"

namespace dais {
namespace {

class Interpreter : public RegionRunner {
 public:
  explicit Interpreter(const Node& node) : node_(node) {}
  std::vector<Datum> run(size_t region, std::vector<Datum> inputs) override {
    return evaluate(*node_.regions.at(region), inputs);
  }

 private:
  const Node& node_;
};

/// A composite op runs as the graph it stands for, built for the types at hand.
std::vector<Datum> evaluate_decomposed(const Node& node, std::span<const Datum> inputs) {
  Graph graph;
  Values arguments;
  std::vector<Datum> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].has_value()) {
      arguments.push_back(nullptr);
      continue;
    }
    if (inputs[i].kind != Datum::Kind::tensor)
      throw Error(Code::unsupported, "a composite op takes tensors only", node.where());
    const Value* original = node.in[i];
    if (original && original->constant()) {
      arguments.push_back(graph.add_constant(*original->constant()));
      continue;
    }
    arguments.push_back(graph.add_input(Type::of(inputs[i].tensor), {}));
    given.push_back(inputs[i]);
  }
  std::vector<std::unique_ptr<Graph>> regions;
  for (const auto& region : node.regions) regions.push_back(region->clone());
  const Node& copy = graph.add_node(*node.op, node.attrs, arguments, node.outs.size(), node.name,
                                    std::move(regions));
  graph.outputs = node.op->decompose(graph, copy);
  graph.remove_dead();  // the composite itself
  return evaluate(graph, given);
}

}  // namespace

void run_reference(Call& call) {
  try {
    call.node.op->reference(call);
  } catch (const Error& error) {
    throw error.where().empty() ? error.at(call.node.where()) : error;
  }
}

std::vector<Datum> evaluate_node(const Node& node, std::span<const Datum> inputs) {
  if (!node.op->reference) return evaluate_decomposed(node, inputs);
  std::vector<Datum> outputs(node.outs.size());
  Interpreter regions(node);
  Call call(node, inputs, outputs, &regions);
  run_reference(call);
  return outputs;
}

std::vector<Datum> evaluate(const Graph& graph, std::span<const Datum> inputs) {
  DAIS_CHECK(inputs.size() == graph.inputs.size());
  std::unordered_map<const Value*, Datum> held;
  std::unordered_map<const Value*, size_t> left;
  for (const auto& node : graph.nodes())
    for (const Value* value : node->in)
      if (value) ++left[value];
  for (const Value* value : graph.outputs) ++left[value];
  for (size_t i = 0; i < inputs.size(); ++i) held[graph.inputs[i]] = inputs[i];
  auto get = [&](const Value* value) -> Datum {
    if (!value) return {};
    if (const Tensor* constant = value->constant()) return *constant;
    auto found = held.find(value);
    DAIS_CHECK(found != held.end());
    return found->second;
  };
  std::vector<Datum> arguments;
  for (const auto& node : graph.nodes()) {
    arguments.clear();
    for (const Value* value : node->in) arguments.push_back(get(value));
    auto results = evaluate_node(*node, arguments);
    for (size_t i = 0; i < results.size(); ++i)
      if (left.contains(node->outs[i])) held[node->outs[i]] = std::move(results[i]);
    for (const Value* value : node->in)
      if (value && --left[value] == 0) held.erase(value);
  }
  std::vector<Datum> outputs;
  for (const Value* value : graph.outputs) outputs.push_back(get(value));
  return outputs;
}

}  // namespace dais
