#include <algorithm>

#include "ops/elementwise/elementwise.h"
#include "ops/matmul/matmul.h"
#include "passes/fuse.h"
#include "passes/passes.h"

namespace dais {
namespace {

constexpr size_t kMaxSteps = 6;

/// The node that alone reads this value, when it is elementwise and of the same type.
Node* only_reader(const Graph& graph, const Value* value) {
  if (!used_once(graph, value)) return nullptr;
  Node* node = value->users()[0].node;
  if (!scalar_call(*node) || node->outs.size() != 1) return nullptr;
  return node->outs[0]->type == value->type ? node : nullptr;
}

}  // namespace

/// Puts what follows a matrix product (bias, activation, residual) into the product's kernel, as
/// far down the chain as a kernel goes along.
bool fuse_matmul_epilogue(Graph& graph, const Target& target) {
  std::vector<Node*> products;
  for (const auto& node : graph.nodes())
    if (node->as<MatMul>() || node->as<Gemm>()) products.push_back(node.get());
  bool changed = false;
  for (Node* product : products) {
    std::vector<Node*> group{product};
    while (group.size() <= kMaxSteps) {
      Node* next = only_reader(graph, group.back()->outs[0]);
      if (!next) break;
      group.push_back(next);
    }
    for (; group.size() > 1; group.pop_back()) {
      if (!fuse_if_supported(graph, group, target)) continue;
      changed = true;
      break;
    }
  }
  return changed;
}

}  // namespace dais
