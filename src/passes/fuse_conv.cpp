// A convolution takes the elementwise nodes behind it into its kernel: as many of them, in their
// order, as some kernel can apply before the result is stored.

#include <algorithm>

#include "ops/conv/conv.h"
#include "ops/conv_transpose/conv_transpose.h"
#include "ops/elementwise/elementwise.h"
#include "passes/fuse.h"

namespace dais {
namespace {

constexpr size_t kLongestChain = 8;

/// The next nodes that the chain's value runs into: one, or a gate and its product with the value.
std::vector<Node*> next_nodes(const Graph& graph, const Value* value) {
  if (graph.is_output(value)) return {};
  const auto& users = value->users();
  if (users.size() == 1) {
    if (!scalar_call(*users[0].node)) return {};
    return {users[0].node};
  }
  if (users.size() != 2 || users[0].node == users[1].node) return {};
  for (const size_t first : {size_t{0}, size_t{1}}) {
    Node *gate = users[first].node, *product = users[1 - first].node;
    if (gate->in.size() != 1 || !scalar_call(*gate) || !product->as<Mul>()) continue;
    if (!used_once(graph, gate->outs[0]) || gate->outs[0]->users()[0].node != product) continue;
    return {gate, product};
  }
  return {};
}

bool fuse_chain(Graph& graph, Node& conv, const Target& target) {
  std::vector<Node*> chain{&conv};
  std::vector<size_t> lengths;
  while (chain.size() < kLongestChain) {
    const auto next = next_nodes(graph, chain.back()->outs[0]);
    if (next.empty()) break;
    chain.insert(chain.end(), next.begin(), next.end());
    lengths.push_back(chain.size());
  }
  for (auto length = lengths.rbegin(); length != lengths.rend(); ++length) {
    chain.resize(*length);
    if (fuse_if_supported(graph, chain, target)) return true;
  }
  return false;
}

}  // namespace

bool fuse_conv(Graph& graph, const Target& target) {
  std::vector<Node*> convolutions;
  for (const auto& node : graph.nodes())
    if (node->as<Conv>() || node->as<ConvTranspose>()) convolutions.push_back(node.get());
  bool changed = false;
  for (Node* node : convolutions) changed |= fuse_chain(graph, *node, target);
  return changed;
}

}  // namespace dais
