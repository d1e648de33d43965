// Reductions along rows, softmax and norms become one kernel with the elementwise nodes before and
// behind them, so that a row is read once and only results are written.

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ops/cast/cast.h"
#include "ops/elementwise/elementwise.h"
#include "ops/fused/rows.h"
#include "passes/fuse.h"

namespace dais {
namespace {

constexpr size_t kLargestGroup = 32;
constexpr size_t kMostOperands = 16;
constexpr size_t kMostResults = 6;

class RowGrouper {
 public:
  RowGrouper(Graph& graph, const Target& target) : graph_(graph), target_(target) {
    for (const auto& node : graph.nodes()) order_.push_back(node.get());
    for (size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = i;
  }

  bool run() {
    bool changed = false;
    for (size_t i = 0; i < order_.size(); ++i)
      if (order_[i] && !taken_.contains(order_[i]) && joined_axes(*order_[i]))
        changed |= grow(*order_[i]);
    return changed;
  }

 private:
  using Group = std::unordered_set<Node*>;

  bool grow(Node& seed) {
    axes_ = *joined_axes(seed);
    full_ = *seed.in[0]->type.shape;
    row_ = row_shape(full_, axes_);
    Group group{&seed};
    while (group.size() < kLargestGroup) {
      Node* next = next_of(group);
      if (!next) break;
      group.insert(next);
    }
    return group.size() > 1 && fuse(group);
  }

  /// A neighbour that can join, before or behind the group; nullptr: there is none.
  Node* next_of(const Group& group) const {
    for (Node* node : group) {
      for (const Value* value : node->in)
        if (Node* maker = value ? value->producer() : nullptr; maker && joins(*maker, group))
          return maker;
      for (const Value* value : node->outs)
        for (const Use& use : value->users())
          if (joins(*use.node, group)) return use.node;
    }
    return nullptr;
  }

  bool joins(Node& node, const Group& group) const {
    if (group.contains(&node) || taken_.contains(&node) || !position_.contains(&node)) return false;
    if (node.outs.size() != 1 || !node.outs[0]->type.ranked() || !of_these_rows(node)) return false;
    Group larger = group;
    larger.insert(&node);
    return fits(larger);
  }

  bool of_these_rows(const Node& node) const {
    if (const auto axes = joined_axes(node))
      return *axes == axes_ && *node.in[0]->type.shape == full_;
    const Dims& shape = *node.outs[0]->type.shape;
    return (node.as<Cast>() || scalar_call(node)) && (shape == full_ || shape == row_);
  }

  /// Whether the group can stand where its last node stands, makes no value twice over, and its
  /// kernel stays small.
  bool fits(const Group& group) const {
    size_t last = 0;
    for (Node* node : group) last = std::max(last, position_.at(node));
    std::unordered_set<const Value*> operands;
    size_t results = 0;
    for (const Node* node : group) {
      for (const Value* value : node->in)
        if (value && !(value->producer() && group.contains(value->producer())))
          operands.insert(value);
      bool outside = graph_.is_output(node->outs[0]);
      for (const Use& use : node->outs[0]->users()) {
        if (group.contains(use.node)) continue;
        outside = true;
        const auto place = position_.find(use.node);
        if (place == position_.end() || place->second <= last) return false;
      }
      results += outside;
    }
    return operands.size() <= kMostOperands && results <= kMostResults;
  }

  bool fuse(const Group& group) {
    std::vector<Node*> members(group.begin(), group.end());
    std::sort(members.begin(), members.end(),
              [&](Node* a, Node* b) { return position_.at(a) < position_.at(b); });
    const size_t last = position_.at(members.back());
    Node* fused = fuse_if_supported(graph_, members, target_);
    if (!fused) return false;
    for (Node* node : members) {
      order_[position_.at(node)] = nullptr;
      position_.erase(node);
    }
    order_[last] = fused;
    position_[fused] = last;
    taken_.insert(fused);
    return true;
  }

  Graph& graph_;
  const Target& target_;
  std::vector<Node*> order_;
  std::unordered_map<const Node*, size_t> position_;
  std::unordered_set<const Node*> taken_;
  size_t axes_ = 1;
  Dims full_, row_;
};

}  // namespace

bool fuse_rows(Graph& graph, const Target& target) { return RowGrouper(graph, target).run(); }

}  // namespace dais
