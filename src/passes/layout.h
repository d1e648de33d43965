#pragma once

#include <map>
#include <optional>
#include <unordered_map>

#include "passes/passes.h"

namespace dais {

using Perm = std::vector<int64_t>;

/// The permutation that makes a channels-first tensor of a channels-last one: 0, rank-1, 1, 2, …
Perm channels_first_perm(size_t rank);
Perm inverse(const Perm& perm);
bool is_identity(const Perm& perm);

/// The same elements as some value of the graph in another order of axes:
/// value = transpose(value of the twin, perm), so that its axis i is axis perm[i] of the twin.
struct Twin {
  Value* value = nullptr;
  Perm perm;
};

/// Values of a graph and their twins, while a layout pass walks over it.
class Twins {
 public:
  explicit Twins(Graph& graph) : graph_(graph) {}

  Graph& graph() { return graph_; }
  const Twin* find(const Value* value) const;
  void set(const Value* value, Twin twin) { twins_[value] = std::move(twin); }
  /// The value itself in its own order, made from its twin at the first call.
  Value* original(Value* value);
  /// A tensor t with value = transpose(t, perm): its twin, or a transposed copy.
  Value* in_order(Value* value, const Perm& perm);

 private:
  Value* transposed(Value* value, const Perm& perm);

  Graph& graph_;
  std::unordered_map<const Value*, Twin> twins_;
  std::unordered_map<const Value*, Value*> originals_;
  std::map<std::pair<const Value*, Perm>, Value*> copies_;
};

/// Sizes of a channels-first activation, in channels-last order.
Value* reordered_sizes(Graph& graph, Value* sizes, size_t rank);

/// Builds `node` on the twins of its inputs, if its op can work in their order of axes and that
/// saves more copies than it costs. Gives one twin per output; empty: the node stays.
std::vector<Twin> follow_layout(Twins& twins, const Node& node);

}  // namespace dais
