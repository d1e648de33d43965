#include "ops/control/control.h"
#include "passes/passes.h"

namespace dais {
namespace {

/// An If whose condition is known is one of its branches.
Values inline_if(Graph& graph, Node& node) {
  const If* attrs = node.as<If>();
  if (!attrs || !node.in[0]->constant() || node.in[0]->constant()->elements() != 1) return {};
  const bool yes = node.in[0]->constant()->data<bool>()[0];
  const auto split = node.in.begin() + 1 + attrs->then_captures;
  const Values captures = yes ? Values(node.in.begin() + 1, split) : Values(split, node.in.end());
  Values results = node.regions[yes ? 0 : 1]->inline_into(graph, captures,
                                                          node.name.empty() ? "" : node.name + "/");
  results.resize(node.outs.size());
  return results;
}

constexpr Rule kRules[] = {{"inline_if", inline_if}};

}  // namespace

/// A branch knows its outputs' sizes better than the If did, which may settle the next If.
bool inline_branches(Graph& graph, const Target& target) {
  constexpr int kMaxRounds = 16;
  bool changed = false;
  for (int round = 0; round < kMaxRounds && rewrite(graph, kRules); ++round) {
    changed = true;
    for (const auto& node : graph.nodes()) graph.infer(*node);
    fold_constants(graph, target);
  }
  return changed;
}

}  // namespace dais
