// Neighbouring elementwise nodes of one shape become one loop over tiles, so that what lies between
// them never leaves the cache.

#include <algorithm>
#include <unordered_set>

#include "ops/cast/cast.h"
#include "ops/elementwise/elementwise.h"
#include "passes/fuse.h"

namespace dais {
namespace {

constexpr size_t kLargestGroup = 32;
constexpr size_t kMostOperands = 16;
constexpr size_t kMostResults = 6;

class Grouper {
 public:
  Grouper(Graph& graph, const Target& target) : graph_(graph), target_(target) {
    for (const auto& node : graph.nodes()) order_.push_back(node.get());
    for (size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = i;
  }

  bool run() {
    bool changed = false;
    for (size_t i = 0; i < order_.size(); ++i)
      if (order_[i] && fusible(*order_[i])) changed |= grow(*order_[i]);
    return changed;
  }

 private:
  bool fusible(const Node& node) {
    if (taken_.contains(&node)) return false;
    const auto [known, added] = fusible_.try_emplace(&node, false);
    if (added)
      known->second = node.outs.size() == 1 && (node.as<Cast>() || scalar_call(node)) &&
                      node.outs[0]->type.ranked() && target_.has_kernel(node);
    return known->second;
  }

  static bool same_shape(const Node& a, const Node& b) {
    return *a.outs[0]->type.shape == *b.outs[0]->type.shape;
  }

  bool grow(Node& seed) {
    std::vector<Node*> group{&seed};
    inside_ = {&seed};
    size_t at = position_.at(&seed);
    const size_t start = at;
    while (++at < order_.size() && at < first_outside_use(group) && group.size() < kLargestGroup) {
      Node* node = order_[at];
      if (!node) continue;
      const bool reads = std::any_of(node->in.begin(), node->in.end(), [&](const Value* value) {
        return value && value->producer() && inside_.contains(value->producer());
      });
      if (!reads || !fusible(*node) || !same_shape(*node, seed)) continue;
      auto larger = group;
      larger.push_back(node);
      add_producers(*node, seed, start, larger);
      std::sort(larger.begin(), larger.end(),
                [&](Node* a, Node* b) { return position_.at(a) < position_.at(b); });
      if (!fits(larger)) continue;
      group = std::move(larger);
      inside_ = {group.begin(), group.end()};
    }
    if (group.size() < 2) return false;
    return fuse(group);
  }

  /// The first node outside that reads a result of the group: the fused node must stand before it.
  size_t first_outside_use(const std::vector<Node*>& group) const {
    size_t first = order_.size();
    for (const Node* node : group)
      for (const Use& use : node->outs[0]->users())
        if (!inside_.contains(use.node)) {
          const auto found = position_.find(use.node);
          if (found != position_.end() && !could_join(*use.node, *group[0]))
            first = std::min(first, found->second);
        }
    return first;
  }

  /// Users that are elementwise themselves may still become part of the group.
  bool could_join(const Node& node, const Node& seed) const {
    const auto known = fusible_.find(&node);
    const bool no = known != fusible_.end() && !known->second;
    return !no && !taken_.contains(&node) && node.outs.size() == 1 &&
           (node.as<Cast>() || scalar_call(node)) && node.outs[0]->type.ranked() &&
           same_shape(node, seed);
  }

  /// Nodes between the seed and `node` that only feed it join with it.
  void add_producers(const Node& node, const Node& seed, size_t start, std::vector<Node*>& group) {
    for (const Value* value : node.in) {
      Node* maker = value ? value->producer() : nullptr;
      if (!maker || position_.find(maker) == position_.end()) continue;
      if (std::find(group.begin(), group.end(), maker) != group.end()) continue;
      if (position_.at(maker) < start || !fusible(*maker) || !same_shape(*maker, seed)) continue;
      if (!used_once(graph_, value)) continue;
      group.push_back(maker);
      add_producers(*maker, seed, start, group);
    }
  }

  /// Whether the group can stand where its last node stands, and its loop stays small.
  bool fits(const std::vector<Node*>& group) const {
    const std::unordered_set<const Node*> inside(group.begin(), group.end());
    const size_t last = position_.at(group.back());
    std::unordered_set<const Value*> operands;
    size_t results = 0;
    for (const Node* node : group) {
      for (const Value* value : node->in)
        if (value && !(value->producer() && inside.contains(value->producer())))
          operands.insert(value);
      bool outside = graph_.is_output(node->outs[0]);
      for (const Use& use : node->outs[0]->users()) {
        if (inside.contains(use.node)) continue;
        outside = true;
        const auto place = position_.find(use.node);
        if (place == position_.end() || place->second <= last) return false;
      }
      results += outside;
    }
    return group.size() <= kLargestGroup && operands.size() <= kMostOperands &&
           results <= kMostResults;
  }

  bool fuse(std::vector<Node*>& group) {
    // The nodes go away; nodes behind them keep their places in the order.
    const size_t last = position_.at(group.back());
    const std::vector<Node*> members = group;
    Node* fused = fuse_if_supported(graph_, group, target_);
    if (!fused) {
      for (Node* node : members) taken_.insert(node);
      return false;
    }
    for (Node* node : members) {
      order_[position_.at(node)] = nullptr;
      position_.erase(node);
      fusible_.erase(node);
    }
    order_[last] = fused;
    position_[fused] = last;
    fusible_[fused] = false;
    return true;
  }

  Graph& graph_;
  const Target& target_;
  std::vector<Node*> order_;
  std::unordered_map<const Node*, size_t> position_;
  std::unordered_map<const Node*, bool> fusible_;
  std::unordered_set<const Node*> taken_, inside_;
};

}  // namespace

bool fuse_elementwise(Graph& graph, const Target& target) { return Grouper(graph, target).run(); }

}  // namespace dais
