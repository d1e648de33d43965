#include "autodiff/autodiff.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "autodiff/control.h"
#include "base/error.h"
#include "ops/elementwise/elementwise.h"
#include "ops/gradient.h"

namespace dais {
namespace {

bool carries_gradient(const Value* value) {
  return !value->type.is_tensor() || is_float(value->type.dtype);
}

bool has_rule(const Op& op) { return op.gradient != nullptr || control_gradient(op) != nullptr; }

/// One reverse sweep over a graph.
class Sweep {
 public:
  Sweep(Graph& graph, std::span<Value* const> results, std::span<Value* const> seeds,
        std::span<Value* const> wrt)
      : graph_(graph),
        results_(results.begin(), results.end()),
        wrt_(wrt.begin(), wrt.end()),
        seeds_(seeds) {}

  Values run() {
    mark();
    while (open_composites()) mark();
    check_all();
    for (const auto& node : graph_.nodes()) before_.insert(node.get());
    for (size_t i = 0; i < results_.size(); ++i) add(results_[i], seeds_[i]);
    for (auto node = path_.rbegin(); node != path_.rend(); ++node) backward(**node);
    Values out;
    for (Value* value : wrt_) {
      const auto found = gradients_.find(value);
      out.push_back(found == gradients_.end() ? nullptr : found->second);
    }
    drop_unused(out);
    return out;
  }

 private:
  /// Finds what depends on `wrt` and leads to the results.
  void mark() {
    active_ = {wrt_.begin(), wrt_.end()};
    const auto is_active = [&](const Value* value) { return value && active_.contains(value); };
    for (const auto& node : graph_.nodes())
      if (std::any_of(node->in.begin(), node->in.end(), is_active))
        for (const Value* out : node->outs)
          if (carries_gradient(out)) active_.insert(out);
    path_.clear();
    std::unordered_set<const Value*> needed(results_.begin(), results_.end());
    for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it) {
      Node& node = **it;
      const bool on_path = std::any_of(node.outs.begin(), node.outs.end(), [&](const Value* out) {
        return active_.contains(out) && needed.contains(out);
      });
      if (!on_path || !std::any_of(node.in.begin(), node.in.end(), is_active)) continue;
      path_.push_back(&node);
      needed.insert(node.in.begin(), node.in.end());
    }
    std::reverse(path_.begin(), path_.end());
  }

  bool open_composites() {
    bool opened = false;
    for (Node* node : path_) {
      if (has_rule(*node->op) || !node->op->decompose) continue;
      Graph::InsertBefore place(graph_, node);
      const Values parts = node->op->decompose(graph_, *node);
      if (parts.empty()) continue;
      bool kept = false;
      for (size_t i = 0; i < parts.size(); ++i) {
        Value* old = node->outs[i];
        if (!parts[i]) continue;
        graph_.replace_uses(old, parts[i]);
        kept |= std::find(results_.begin(), results_.end(), old) != results_.end();
        std::replace(results_.begin(), results_.end(), old, parts[i]);
      }
      // The caller may still hold a result.
      if (!kept) graph_.erase(*node);
      opened = true;
    }
    return opened;
  }

  void check_all() const {
    std::string problems;
    size_t count = 0;
    for (const Node* node : path_) {
      if (has_rule(*node->op)) continue;
      ++count;
      std::string_view reason = no_gradient_reason(*node->op);
      if (reason.empty()) reason = "there is no rule";
      problems += (problems.empty() ? "" : "; ") + node->where() + ": " + std::string(reason);
    }
    if (count > 0)
      throw Error(Code::unsupported,
                  std::to_string(count) + (count == 1 ? " node has" : " nodes have") +
                      " no gradient: " + problems,
                  graph_.name, "Keep what is to be trained behind them");
  }

  void add(Value* to, Value* gradient) {
    if (!gradient || !to || !active_.contains(to)) return;
    DAIS_CHECK(gradient->type.dtype == to->type.dtype);
    Value*& sum = gradients_[to];
    sum = sum ? graph_.add(Add{}, {sum, gradient}) : gradient;
  }

  void backward(Node& node) {
    Values dy;
    bool any = false;
    for (const Value* out : node.outs) {
      const auto found = gradients_.find(out);
      dy.push_back(found == gradients_.end() ? nullptr : found->second);
      any |= dy.back() != nullptr;
    }
    if (!any) return;
    Node* last = graph_.nodes().back().get();
    const ControlGradient control = control_gradient(*node.op);
    const Values dx = control ? control(graph_, node, dy) : node.op->gradient(graph_, node, dy);
    check_complete(node, dy, dx);
    for (size_t i = 0; i < std::min(dx.size(), node.in.size()); ++i) add(node.in[i], dx[i]);
    for (Node* made = graph_.next(*last); made; made = graph_.next(*made))
      if (made->name.empty() && !node.name.empty()) made->name = node.name + "/gradient";
  }

  /// A rule that leaves out an input it cannot differentiate by must not pass for one that found
  /// no dependence. With a result that nobody uses, that may well be so.
  void check_complete(const Node& node, const Values& dy, const Values& dx) const {
    if (node.op->gradient == zero_gradient) return;
    for (size_t i = 0; i < dy.size(); ++i)
      if (!dy[i] && carries_gradient(node.outs[i])) return;
    for (size_t i = 0; i < node.in.size(); ++i)
      if (node.in[i] && active_.contains(node.in[i]) && (i >= dx.size() || !dx[i]))
        throw Error(Code::unsupported,
                    node.where() + " has no gradient by its input " + std::to_string(i) + " ('" +
                        node.in[i]->name + "')",
                    graph_.name, "Keep what is to be trained out of it");
  }

  /// Rules give the gradients of all inputs; those that nobody asked for go.
  void drop_unused(const Values& wanted) {
    const std::unordered_set<const Value*> keep(wanted.begin(), wanted.end());
    std::vector<Node*> made;
    for (const auto& node : graph_.nodes())
      if (!before_.contains(node.get())) made.push_back(node.get());
    for (auto node = made.rbegin(); node != made.rend(); ++node)
      if (std::all_of((*node)->outs.begin(), (*node)->outs.end(), [&](const Value* out) {
            return out->users().empty() && !keep.contains(out) && !graph_.is_output(out);
          }))
        graph_.erase(**node);
  }

  Graph& graph_;
  Values results_, wrt_;
  std::span<Value* const> seeds_;
  std::unordered_set<const Value*> active_;
  std::vector<Node*> path_;  ///< in execution order
  std::unordered_set<const Node*> before_;
  std::unordered_map<const Value*, Value*> gradients_;
};

}  // namespace

Values append_gradients(Graph& graph, std::span<Value* const> results,
                        std::span<Value* const> seeds, std::span<Value* const> wrt) {
  DAIS_CHECK(results.size() == seeds.size());
  return Sweep(graph, results, seeds, wrt).run();
}

Values append_gradients(Graph& graph, Value* loss, std::span<Value* const> wrt) {
  if (!loss->type.is_tensor() || !is_float(loss->type.dtype))
    throw Error(Code::invalid_argument, "the loss '" + loss->name + "' is " + loss->type.text(),
                graph.name, "Choose a value of a float type");
  Value* seed = filled_like(graph, 1, loss);
  return append_gradients(graph, std::span(&loss, 1), std::span(&seed, 1), wrt);
}

}  // namespace dais
