#include "train/recompute.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ops/recall/recall.h"

namespace dais::train {
namespace {

/// Open sizes count as a middling number.
double bytes_of(const Value& value) {
  constexpr int64_t kOpen = 100;
  if (!value.type.is_tensor() || !value.type.ranked()) return 0;
  auto out = static_cast<double>(dtype_size(value.type.dtype));
  for (const Dim& dim : *value.type.shape)
    out *= static_cast<double>(dim.constant().value_or(kOpen));
  return out;
}

class Recomputation {
 public:
  Recomputation(Graph& graph, const Node& last) : g_(graph) {
    for (const auto& node : graph.nodes()) {
      place_[node.get()] = nodes_.size();
      nodes_.push_back(node.get());
    }
    end_ = place_.at(&last) + 1;
  }

  void run(int stretches) {
    divide(stretches);
    kept_.insert(g_.outputs.begin(), g_.outputs.end());
    for (const size_t cut : cuts_)
      for (size_t i = 0; i <= cut; ++i)
        for (Value* value : nodes_[i]->outs)
          if (last_forward_use(*value) > cut) kept_.insert(value);
    for (size_t i = 0; i < cuts_.size(); ++i) again(i == 0 ? 0 : cuts_[i - 1] + 1, cuts_[i] + 1);
  }

 private:
  /// Place of the last node on the way forward that reads a value; its own when none does.
  size_t last_forward_use(const Value& value) const {
    size_t last = place_.at(value.producer());
    for (const Use& use : value.users()) {
      const size_t at = place_.at(use.node);
      if (at < end_) last = std::max(last, at);
    }
    return last;
  }
  std::vector<Use> backward_uses(const Value& value) const {
    std::vector<Use> out;
    for (const Use& use : value.users())
      if (const auto found = place_.find(use.node); found != place_.end() && found->second >= end_)
        out.push_back(use);
    return out;
  }

  /// Chooses the places behind which a stretch ends: near the wanted share of what the way back
  /// reads, where least passes.
  void divide(int stretches) {
    std::vector<double> sum(end_), passing(end_);
    double total = 0;
    for (size_t i = 0; i < end_; ++i) {
      for (const Value* value : nodes_[i]->outs) {
        if (!backward_uses(*value).empty()) total += bytes_of(*value);
        for (size_t k = i; k < last_forward_use(*value); ++k) passing[k] += bytes_of(*value);
      }
      sum[i] = total;
    }
    for (int part = 1; part < stretches; ++part) {
      const double wanted = total * part / stretches, slack = total / (3.0 * stretches);
      size_t best = end_;
      for (size_t i = cuts_.empty() ? 0 : cuts_.back() + 1; i + 1 < end_; ++i)
        if (std::abs(sum[i] - wanted) <= slack && (best == end_ || passing[i] < passing[best]))
          best = i;
      if (best < end_) cuts_.push_back(best);
    }
  }

  static bool repeatable(const Node& node) { return node.op->pure && node.regions.empty(); }

  /// Computes what the way back reads of nodes [first, last) once more.
  void again(size_t first, size_t last) {
    std::unordered_set<const Value*> wanted;
    size_t before = nodes_.size();
    for (size_t i = last; i-- > first;)
      for (Value* value : nodes_[i]->outs) {
        if (kept_.contains(value) || !repeatable(*nodes_[i])) continue;
        const auto uses = backward_uses(*value);
        for (const Use& use : uses) before = std::min(before, place_.at(use.node));
        if (!uses.empty()) wanted.insert(value);
        if (wanted.contains(value))
          for (const Value* in : nodes_[i]->in)
            if (in) wanted.insert(in);
      }
    if (before == nodes_.size()) return;
    const Graph::InsertBefore place(g_, nodes_[before]);
    std::unordered_map<const Value*, Value*> twins;
    // What is no twin comes from a stretch before, is kept of this one, or is an input; of inputs
    // the first operand is enough to tell a node from its twin.
    const auto twin_of = [&](Value* value, bool first_operand) {
      if (!value || value->constant() || (!value->producer() && !first_operand)) return value;
      Value*& twin = twins[value];
      if (!twin) twin = g_.add(Recall{}, {value});
      return twin;
    };
    for (size_t i = first; i < last; ++i) {
      const Node& node = *nodes_[i];
      const bool needed = std::any_of(node.outs.begin(), node.outs.end(), [&](const Value* value) {
        return wanted.contains(value) && !kept_.contains(value);
      });
      if (!needed || !repeatable(node)) continue;
      Values in;
      for (Value* value : node.in) in.push_back(twin_of(value, in.empty()));
      const Node& made = g_.add_node(*node.op, node.attrs, std::move(in), node.outs.size());
      for (size_t k = 0; k < node.outs.size(); ++k) {
        Value* value = node.outs[k];
        if (kept_.contains(value)) continue;
        twins[value] = made.outs[k];
        for (const Use& use : backward_uses(*value))
          g_.set_input(*use.node, use.index, made.outs[k]);
      }
    }
  }

  Graph& g_;
  std::vector<Node*> nodes_;
  std::unordered_map<const Node*, size_t> place_;
  size_t end_ = 0;
  std::vector<size_t> cuts_;  ///< the last node of each stretch but the last
  std::unordered_set<const Value*> kept_;
};

}  // namespace

void recompute(Graph& graph, const Node& last, int stretches) {
  Recomputation(graph, last).run(stretches);
}

}  // namespace dais::train
