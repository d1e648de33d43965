#pragma once

#include <span>

#include "ir/graph.h"

namespace dais {

/// Runs a region of a node: control flow asks its surroundings (evaluator or session) for it.
class RegionRunner {
 public:
  virtual ~RegionRunner() = default;
  virtual std::vector<Datum> run(size_t region, std::vector<Datum> inputs) = 0;
};

/// One execution of a node: what a reference kernel sees. Outputs whose memory was planned are
/// written in place; others are allocated when asked for, so a kernel needs no second path for
/// sizes that only running tells.
class Call {
 public:
  Call(const Node& node, std::span<const Datum> in, std::span<Datum> out,
       RegionRunner* regions = nullptr)
      : node(node), in_(in), out_(out), regions_(regions) {}

  const Node& node;
  template <typename Struct>
  const Struct& attrs() const {
    return *static_cast<const Struct*>(node.attrs.data());
  }

  size_t inputs() const { return in_.size(); }
  size_t outputs() const { return out_.size(); }
  bool has(size_t i) const { return i < in_.size() && in_[i].has_value(); }
  /// A tensor input; throws `invalid_argument` when it is left out or not a tensor.
  const Tensor& in(size_t i) const;
  const Datum& datum(size_t i) const { return in_[i]; }

  /// Output i as a tensor of this shape and the inferred (or given) element type. Uninitialised.
  Tensor& out(size_t i, const Shape& shape) { return out(i, node.outs[i]->type.dtype, shape); }
  Tensor& out(size_t i, DType dtype, const Shape& shape);
  /// Sets an output to an existing value (sequences, optionals, views of inputs).
  void set(size_t i, Datum value);
  std::vector<Datum> run_region(size_t region, std::vector<Datum> inputs);

  [[noreturn]] void fail(const std::string& problem, const std::string& remedy = {}) const;
  void require(bool condition, const char* problem) const {
    if (!condition) fail(problem);
  }

 private:
  std::span<const Datum> in_;
  std::span<Datum> out_;
  RegionRunner* regions_;
};

/// Runs a graph node by node with reference kernels (composite ops are decomposed): the yardstick
/// for every other way of running it, and what constant folding uses.
std::vector<Datum> evaluate(const Graph& graph, std::span<const Datum> inputs);

/// Runs one node the same way.
std::vector<Datum> evaluate_node(const Node& node, std::span<const Datum> inputs);

}  // namespace dais
