// A quantised convolution takes the residual sum behind it into its kernel: dequantise, add,
// perhaps limit, quantise.

#include "ops/conv/conv.h"
#include "ops/elementwise/elementwise.h"
#include "ops/quantize/quantize.h"
#include "passes/fuse.h"
#include "passes/rewriter.h"

namespace dais {
namespace {

Node* only_producer(const Graph& graph, const Value* value, const Op& op) {
  Node* node = value ? value->producer() : nullptr;
  return node && node->op == &op && used_once(graph, value) ? node : nullptr;
}

/// Position of nodes in execution order.
std::unordered_map<const Node*, size_t> places_of(const Graph& graph) {
  std::unordered_map<const Node*, size_t> out;
  for (const auto& node : graph.nodes()) out.emplace(node.get(), out.size());
  return out;
}

/// A DequantizeLinear of its own for `user`, where others read the same one.
Node* own_copy(Graph& graph, Node& user, size_t input) {
  Node* node = user.in[input]->producer();
  if (!node || !node->as<DequantizeLinear>()) return nullptr;
  if (used_once(graph, node->outs[0])) return node;
  Graph::InsertBefore place(graph, &user);
  Node& copy = graph.add_node(*node->op, node->attrs, node->in, 1, node->name);
  graph.set_input(user, input, copy.outs[0]);
  return &copy;
}

bool fuse_sum(Graph& graph, Node& quantise, const Target& target) {
  Node* limit = only_producer(graph, quantise.in[0], Relu::op);
  if (!limit) limit = only_producer(graph, quantise.in[0], Clip::op);
  Node* sum = only_producer(graph, limit ? limit->in[0] : quantise.in[0], Add::op);
  if (!sum || sum->in[0] == sum->in[1]) return false;
  const auto places = places_of(graph);
  Node *conv = nullptr, *own = nullptr;
  size_t side = 0;
  for (size_t i = 0; i < 2; ++i) {
    Node* node = only_producer(graph, sum->in[i], DequantizeLinear::op);
    Node* source = node ? only_producer(graph, node->in[0], QLinearConv::op) : nullptr;
    // Of two convolutions the later one adds the other's result.
    if (!source || (conv && places.at(conv) > places.at(source))) continue;
    conv = source;
    own = node;
    side = i;
  }
  if (!conv) return false;
  Node* other = own_copy(graph, *sum, 1 - side);
  if (!other) return false;
  std::vector<Node*> group{other, conv, own, sum};
  if (limit) group.push_back(limit);
  group.push_back(&quantise);
  return fuse_if_supported(graph, group, target) != nullptr;
}

}  // namespace

bool fuse_quantised(Graph& graph, const Target& target) {
  std::vector<Node*> ends;
  for (const auto& node : graph.nodes())
    if (node->as<QuantizeLinear>()) ends.push_back(node.get());
  bool changed = false;
  for (Node* node : ends) changed |= fuse_sum(graph, *node, target);
  return changed;
}

}  // namespace dais
