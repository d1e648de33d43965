// Convolutions run on channels-last activations. One walk in execution order keeps, beside each
// value, a twin in another order of axes. A convolution asks for the channels-last twin of its
// input and gives its result as one; nodes that can work in any order follow their inputs; the
// others, and the graph's outputs, get a transposed copy, made where it is first needed. Transpose
// nodes of the model only rename twins, so that those around convolutions in models that were born
// channels-last vanish.

#include "passes/layout.h"

#include <algorithm>
#include <unordered_set>

#include "ops/conv/conv.h"
#include "ops/conv/conv_body.h"
#include "ops/conv_transpose/conv_transpose.h"
#include "ops/gather/gather.h"
#include "ops/reshape/reshape.h"
#include "ops/transpose/transpose.h"

namespace dais {
namespace {

Perm composed(const Perm& inner, const Perm& outer) {
  Perm out;
  for (const int64_t axis : outer) out.push_back(inner[static_cast<size_t>(axis)]);
  return out;
}

/// Whether only axes of size 1 change places, so that no element moves.
bool keeps_elements(const Dims& dims, const Perm& perm) {
  int64_t last = -1;
  for (const int64_t axis : perm) {
    if (dims[static_cast<size_t>(axis)].is(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

/// The shape input of a Reshape that has the effect of the transposition; empty: it cannot be told.
std::vector<int64_t> reshape_sizes(const Dims& dims, const Perm& perm) {
  std::vector<int64_t> out;
  int64_t left_open = 0;
  for (size_t i = 0; i < perm.size(); ++i) {
    const Dim& dim = dims[static_cast<size_t>(perm[i])];
    if (const auto size = dim.constant(); size && *size > 0)
      out.push_back(*size);
    else if (perm[i] == static_cast<int64_t>(i))
      out.push_back(0);
    else
      out.push_back(-1);
    left_open += out.back() == -1;
  }
  return left_open <= 1 ? out : std::vector<int64_t>{};
}

Value* add_transpose(Graph& graph, Value* value, const Perm& perm) {
  const Dims& dims = *value->type.shape;
  if (keeps_elements(dims, perm)) {
    const auto sizes = reshape_sizes(dims, perm);
    if (!sizes.empty())
      return graph.add(Reshape{}, {value, graph.add_constant(Tensor::ints(sizes))});
  }
  return graph.add(Transpose{.perm = perm}, {value});
}

Perm full_perm(const Transpose& attrs, size_t rank) {
  Perm perm = attrs.perm;
  for (size_t axis = 0; perm.size() < rank; ++axis)
    perm.push_back(static_cast<int64_t>(rank - 1 - axis));
  for (int64_t& axis : perm)
    if (axis < 0) axis += static_cast<int64_t>(rank);
  return perm;
}

/// Where bf16 has no kernel it was widened before.
bool kernel_type(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::u8 || dtype == DType::i8;
}

template <typename S>
Attrs in_channels_last(const S& attrs) {
  S changed = attrs;
  changed.channels_last = true;
  return Attrs::of(std::move(changed));
}

/// Attributes for channels-last activations when the node is a convolution of the other kind.
std::optional<Attrs> as_channels_last(const Node& node) {
  if (const auto* conv = node.as<Conv>(); conv && !conv->channels_last)
    return in_channels_last(*conv);
  if (const auto* conv = node.as<ConvTranspose>(); conv && !conv->channels_last)
    return in_channels_last(*conv);
  if (const auto* conv = node.as<QLinearConv>(); conv && !conv->channels_last)
    return in_channels_last(*conv);
  if (const auto* conv = node.as<ConvInteger>(); conv && !conv->channels_last)
    return in_channels_last(*conv);
  return {};
}

/// Convolutions that do as well on row-major activations, had these not to be copied.
bool runs_row_major(const Node& node) {
  return node.in[0]->type.dtype == DType::f32 && is_depthwise_planes(node);
}

/// Whether a convolution works on what becomes of this node's result.
bool reaches_convolution(const Node& node) {
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> open{&node};
  while (!open.empty()) {
    const Node* next = open.back();
    open.pop_back();
    for (const Value* value : next->outs)
      for (const Use& use : value->users()) {
        if (as_channels_last(*use.node)) return true;
        if (seen.insert(use.node).second) open.push_back(use.node);
      }
  }
  return false;
}

class Walk {
 public:
  explicit Walk(Graph& graph) : graph_(graph), twins_(graph) {}

  bool run() {
    std::vector<Node*> nodes;
    for (const auto& node : graph_.nodes()) nodes.push_back(node.get());
    for (const Node* node : nodes) convolutions_ahead_ += as_channels_last(*node).has_value();
    for (Node* node : nodes) {
      Graph::InsertBefore place(graph_, node);
      convolutions_ahead_ -= as_channels_last(*node).has_value();
      if (!visit_transpose(*node) && !visit_convolution(*node) && !visit_gradient(*node) &&
          !follow(*node))
        keep(*node);
    }
    if (!changed_) return false;
    const Values outputs = graph_.outputs;
    for (Value* value : outputs)
      if (twins_.find(value)) graph_.replace_uses(value, twins_.original(value));
    graph_.remove_dead();
    return true;
  }

 private:
  bool visit_transpose(Node& node) {
    const auto* attrs = node.as<Transpose>();
    if (!attrs || !node.in[0]->type.ranked() || node.in[0]->constant()) return false;
    const Perm perm = full_perm(*attrs, node.in[0]->type.shape->size());
    if (const Twin* twin = twins_.find(node.in[0])) {
      twins_.set(node.outs[0], {twin->value, composed(twin->perm, perm)});
      changed_ = true;
      return true;
    }
    // Only the order that convolutions want is worth carrying on, and only to convolutions.
    if (convolutions_ahead_ == 0 || perm.size() < 3 || perm != channels_first_perm(perm.size()))
      return false;
    twins_.set(node.outs[0], {node.in[0], perm});
    changed_ = true;
    return true;
  }

  bool visit_convolution(Node& node) {
    const auto attrs = as_channels_last(node);
    if (!attrs || !node.outs[0]->type.ranked() || !node.in[0]->type.ranked()) return false;
    if (!kernel_type(node.in[0]->type.dtype)) return false;
    if (runs_row_major(node) && !twins_.find(node.in[0]) && !reaches_convolution(node))
      return false;
    const Perm perm = channels_first_perm(node.in[0]->type.shape->size());
    Values in{twins_.in_order(node.in[0], perm)};
    for (size_t i = 1; i < node.in.size(); ++i)
      in.push_back(node.in[i] ? twins_.original(node.in[i]) : nullptr);
    Node& made = graph_.add_node(*node.op, *attrs, std::move(in), 1, node.name);
    twins_.set(node.outs[0], {made.outs[0], perm});
    changed_ = true;
    return true;
  }

  /// dX from (dy, W, sizes) and dW from (X, dy).
  bool visit_gradient(Node& node) {
    const auto* data = node.as<ConvBackwardData>();
    const auto* weights = node.as<ConvBackwardWeights>();
    if (!data && !weights) return false;
    if (data ? data->channels_last : weights->channels_last) return false;
    for (const Value* value : {node.in[0], node.in[1]})
      if (!value->type.ranked() || !kernel_type(value->type.dtype)) return false;
    const Perm perm = channels_first_perm(node.in[0]->type.shape->size());
    Values in{twins_.in_order(node.in[0], perm)};
    if (weights) {
      in.push_back(twins_.in_order(node.in[1], perm));
      Node& made = graph_.add_node(*node.op, in_channels_last(*weights), in, 1, node.name);
      Perm same(perm.size());
      for (size_t axis = 0; axis < same.size(); ++axis) same[axis] = static_cast<int64_t>(axis);
      twins_.set(node.outs[0], {made.outs[0], std::move(same)});
    } else {
      in.push_back(twins_.original(node.in[1]));
      in.push_back(reordered_sizes(graph_, twins_.original(node.in[2]), perm.size()));
      Node& made = graph_.add_node(*node.op, in_channels_last(*data), in, 1, node.name);
      twins_.set(node.outs[0], {made.outs[0], perm});
    }
    changed_ = true;
    return true;
  }

  bool follow(Node& node) {
    const bool any = std::any_of(node.in.begin(), node.in.end(), [&](const Value* value) {
      const Twin* twin = value ? twins_.find(value) : nullptr;
      return twin && !is_identity(twin->perm);
    });
    if (!any) return false;
    auto made = follow_layout(twins_, node);
    if (made.empty()) return false;
    for (size_t i = 0; i < made.size(); ++i)
      if (made[i].value) twins_.set(node.outs[i], std::move(made[i]));
    return true;
  }

  void keep(Node& node) {
    for (size_t i = 0; i < node.in.size(); ++i) {
      if (!node.in[i] || !twins_.find(node.in[i])) continue;
      Value* original = twins_.original(node.in[i]);
      retyped_ |= !(original->type == node.in[i]->type);
      graph_.set_input(node, i, original);
    }
    // Sizes that depend on data got new names where their node was built again.
    if (retyped_) graph_.infer(node);
  }

  Graph& graph_;
  int64_t convolutions_ahead_ = 0;
  Twins twins_;
  bool changed_ = false, retyped_ = false;
};

bool has_convolution(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const auto& node) { return as_channels_last(*node).has_value(); });
}

}  // namespace

Perm channels_first_perm(size_t rank) {
  Perm perm{0, static_cast<int64_t>(rank) - 1};
  for (size_t axis = 1; axis + 1 < rank; ++axis) perm.push_back(static_cast<int64_t>(axis));
  return perm;
}

Value* reordered_sizes(Graph& graph, Value* sizes, size_t rank) {
  const Perm order = inverse(channels_first_perm(rank));
  return graph.add(Gather{}, {sizes, graph.add_constant(Tensor::ints(order))});
}

Perm inverse(const Perm& perm) {
  Perm out(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    out[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return out;
}

bool is_identity(const Perm& perm) { return std::is_sorted(perm.begin(), perm.end()); }

const Twin* Twins::find(const Value* value) const {
  const auto found = twins_.find(value);
  return found == twins_.end() ? nullptr : &found->second;
}

Value* Twins::original(Value* value) {
  const Twin* twin = find(value);
  if (!twin) return value;
  if (is_identity(twin->perm)) return twin->value;
  Value*& made = originals_[value];
  if (!made) made = transposed(twin->value, twin->perm);
  return made;
}

Value* Twins::in_order(Value* value, const Perm& perm) {
  const Perm wanted = inverse(perm);
  const Twin* twin = find(value);
  if (!twin) return is_identity(wanted) ? value : transposed(value, wanted);
  const Perm rest = composed(twin->perm, wanted);
  return is_identity(rest) ? twin->value : transposed(twin->value, rest);
}

Value* Twins::transposed(Value* value, const Perm& perm) {
  Value*& made = copies_[{value, perm}];
  if (!made) made = add_transpose(graph_, value, perm);
  return made;
}

bool layout(Graph& graph, const Target&) {
  // Models without convolutions keep the order they have.
  return has_convolution(graph) && Walk(graph).run();
}

}  // namespace dais
