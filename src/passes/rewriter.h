#pragma once

#include <span>
#include <string_view>

#include "ir/graph.h"
#include "ir/target.h"

namespace dais {

/// A local rewrite. Looks at a node and what surrounds it; when it matches, builds the replacement
/// (new nodes go before `node`) and returns one value per output of the node, nullptr where that
/// output is unused. An empty result means no match, and then nothing may have been added.
struct Rule {
  std::string_view name;
  Values (*apply)(Graph& graph, Node& node) = nullptr;
  /// Instead of `apply`: for rules that ask what the target has kernels for.
  Values (*apply_for)(Graph& graph, Node& node, const Target& target) = nullptr;
};

/// Applies rules to every node until none matches; then drops what became dead. The one rewriting
/// engine: greedy, in execution order, deterministic.
/// Rules with apply_for need `target`.
bool rewrite(Graph& graph, std::span<const Rule> rules, const Target* target = nullptr);

/// Whether only one node reads the value and it is no graph output.
bool used_once(const Graph& graph, const Value* value);

/// The producer when it is of op `Struct`: producer_as<Transpose>(x). nullptr otherwise.
template <typename Struct>
Node* producer_as(const Value* value) {
  if (!value || !value->producer()) return nullptr;
  return value->producer()->template as<Struct>() ? value->producer() : nullptr;
}

}  // namespace dais
