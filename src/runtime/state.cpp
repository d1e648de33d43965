#include "runtime/state.h"

#include <algorithm>
#include <unordered_set>

namespace dais {
namespace {

/// The node whose memory a value lies in, seen through reshapes; null for inputs and constants.
Node* maker_of(const Value* value) {
  Node* node = value->producer();
  while (node && node->op->view && node->has(0) && node->in[0]->producer())
    node = node->in[0]->producer();
  return node;
}

/// All nodes that read an input's elements, also through reshapes.
void collect_readers(const Value* value, std::vector<Node*>& readers) {
  for (const Use& use : value->users()) {
    readers.push_back(use.node);
    if (use.node->op->view && use.index == 0) collect_readers(use.node->outs[0], readers);
  }
}

class StateOrder {
 public:
  StateOrder(Graph& graph, std::span<const StatePair> states) : graph_(graph) {
    for (const StatePair& state : states) {
      Node* maker = maker_of(graph.outputs[state.output]);
      if (!maker) continue;
      std::vector<Node*> readers;
      collect_readers(graph.inputs[state.input], readers);
      std::erase(readers, maker);
      if (!readers.empty()) pairs_.push_back({maker, std::move(readers)});
    }
  }

  void run() {
    number();
    for (const auto& [maker, readers] : pairs_) {
      Node* last = *std::max_element(readers.begin(), readers.end(), [&](Node* a, Node* b) {
        return position_.at(a) < position_.at(b);
      });
      if (position_.at(last) > position_.at(maker)) delay(*maker, *last, readers);
      if (position_.at(last) < position_.at(maker)) readers_[maker] = &readers;
    }
  }

 private:
  struct Pair {
    Node* maker;
    std::vector<Node*> readers;
  };

  void number() {
    position_.clear();
    order_.clear();
    for (const auto& node : graph_.nodes()) {
      position_.emplace(node.get(), order_.size());
      order_.push_back(node.get());
    }
  }

  /// Moves `maker`, and what must follow it, from before to behind `last`.
  void delay(Node& maker, Node& last, const std::vector<Node*>& readers) {
    std::unordered_set<const Node*> held{&maker};
    std::vector<Node*> moved{&maker};
    for (size_t at = position_.at(&maker) + 1; at <= position_.at(&last); ++at) {
      Node* node = order_[at];
      const bool depends = std::any_of(node->in.begin(), node->in.end(), [&](const Value* value) {
        return value && value->producer() && held.contains(value->producer());
      });
      if (!depends && !held_back(*node, held)) continue;
      held.insert(node);
      moved.push_back(node);
    }
    if (std::any_of(readers.begin(), readers.end(),
                    [&](const Node* reader) { return held.contains(reader); }))
      return;
    const size_t next = position_.at(&last) + 1;
    if (next < order_.size()) {
      for (Node* node : moved) graph_.move_before(*node, *order_[next]);
    } else {
      // Behind the last node of all: the nodes that stay move before the first that goes.
      for (size_t at = position_.at(&maker); at < order_.size(); ++at)
        if (!held.contains(order_[at])) graph_.move_before(*order_[at], maker);
    }
    number();
  }

  /// Whether this makes the new value of a state settled before, some reader of which is held.
  bool held_back(const Node& node, const std::unordered_set<const Node*>& held) const {
    const auto found = readers_.find(&node);
    return found != readers_.end() &&
           std::any_of(found->second->begin(), found->second->end(),
                       [&](const Node* reader) { return held.contains(reader); });
  }

  Graph& graph_;
  std::vector<Pair> pairs_;
  std::vector<Node*> order_;
  std::unordered_map<const Node*, size_t> position_;
  std::unordered_map<const Node*, const std::vector<Node*>*> readers_;  ///< by settled maker
};

}  // namespace

void check_states(const Graph& graph, std::span<const StatePair> states) {
  const auto fail = [](const std::string& what) {
    throw Error(Code::invalid_argument, what, "",
                "A state is one input and the output that gives its next value");
  };
  std::unordered_set<size_t> inputs, outputs;
  for (const StatePair& state : states) {
    if (state.input >= graph.inputs.size())
      fail("a state names input " + std::to_string(state.input) + " of " +
           std::to_string(graph.inputs.size()));
    if (state.output >= graph.outputs.size())
      fail("a state names output " + std::to_string(state.output) + " of " +
           std::to_string(graph.outputs.size()));
    const Value &in = *graph.inputs[state.input], &out = *graph.outputs[state.output];
    const std::string both = "'" + in.name + "' and '" + out.name + "'";
    if (!inputs.insert(state.input).second || !outputs.insert(state.output).second)
      fail(both + " share an input or output with another state");
    if (!in.type.is_tensor() || !out.type.is_tensor() || in.type.dtype != out.type.dtype ||
        in.type.dtype == DType::string || in.type.dtype == DType::undefined)
      fail("the state of " + both + " is " + in.type.text() + " before and " + out.type.text() +
           " after");
  }
}

void order_for_states(Graph& graph, std::span<const StatePair> states) {
  StateOrder(graph, states).run();
}

}  // namespace dais
