// Which nodes can work in another order of axes, and what changes in them.

#include <algorithm>

#include "ops/cast/cast.h"
#include "ops/concat/concat.h"
#include "ops/depth_to_space/depth_to_space.h"
#include "ops/elementwise/elementwise.h"
#include "ops/gather/gather.h"
#include "ops/lrn/lrn.h"
#include "ops/norm/norm.h"
#include "ops/pad/pad.h"
#include "ops/pool/pool.h"
#include "ops/quantize/quantize.h"
#include "ops/recall/recall.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/resize/resize.h"
#include "ops/shape/shape.h"
#include "ops/slice/slice.h"
#include "ops/softmax/softmax.h"
#include "ops/split/split.h"
#include "passes/layout.h"

namespace dais {
namespace {

/// Elements of a value; symbolic sizes count as a middling number.
double weight(const Value* value) {
  constexpr double unknown = 64;
  double out = 1;
  if (!value->type.ranked()) return unknown;
  for (const Dim& dim : *value->type.shape)
    out *= static_cast<double>(dim.constant().value_or(static_cast<int64_t>(unknown)));
  return out;
}

class Follower {
 public:
  Follower(Twins& twins, const Node& node) : twins_(twins), graph_(twins.graph()), node_(node) {
    const Value* heaviest = nullptr;
    for (const Value* value : node.in) {
      const Twin* twin = value ? twins.find(value) : nullptr;
      if (!twin || is_identity(twin->perm)) continue;
      if (!heaviest || weight(value) > weight(heaviest)) heaviest = value;
    }
    perm_ = twins.find(heaviest)->perm;
  }

  std::vector<Twin> build() {
    if (scalar_call(node_) || node_.as<Cast>() || node_.as<Recall>()) return elementwise();
    if (const auto* softmax = node_.as<Softmax>()) return along_axis(*softmax);
    if (const auto* softmax = node_.as<LogSoftmax>()) return along_axis(*softmax);
    if (const auto* concat = node_.as<Concat>()) return join(*concat);
    if (const auto* split = node_.as<Split>()) return along_axis(*split);
    if (const auto* linear = node_.as<QuantizeLinear>()) return quantise(*linear);
    if (const auto* linear = node_.as<DequantizeLinear>()) return quantise(*linear);
    if (node_.as<DynamicQuantizeLinear>()) return single(node_.attrs);
    if (const auto* pool = node_.as<MaxPool>()) return windowed(*pool);
    if (const auto* pool = node_.as<AveragePool>()) return windowed(*pool);
    if (const auto* pool = node_.as<LpPool>()) return windowed(*pool);
    if (const auto* pool = node_.as<MaxPoolBackward>()) return backward(*pool, 3);
    if (const auto* pool = node_.as<AveragePoolBackward>()) return backward(*pool, 1);
    if (const auto* norm = node_.as<BatchNormalizationBackward>()) return backward(*norm, 2);
    if (const auto* pool = node_.as<GlobalAveragePool>()) return windowed(*pool);
    if (const auto* pool = node_.as<GlobalMaxPool>()) return windowed(*pool);
    if (const auto* pool = node_.as<GlobalLpPool>()) return windowed(*pool);
    if (const auto* norm = node_.as<BatchNormalization>()) return normalise(*norm);
    if (const auto* norm = node_.as<GroupNormalization>()) return windowed(*norm);
    if (const auto* norm = node_.as<LRN>()) return windowed(*norm);
    if (const auto* block = node_.as<DepthToSpace>()) return windowed(*block);
    if (const auto* block = node_.as<SpaceToDepth>()) return windowed(*block);
    if (const auto* resize = node_.as<Resize>()) return resample(*resize);
    if (node_.as<Pad>()) return pad();
    if (node_.as<Slice>()) return slice();
    if (reduction_of(*node_.op)) return reduce();
    if (node_.as<Squeeze>()) return squeeze();
    if (const auto* shape = node_.as<ShapeOf>()) return sizes(*shape);
    return {};
  }

 private:
  size_t rank() const { return perm_.size(); }

  /// Where an axis of the original lies in the twin.
  int64_t moved(int64_t axis) const {
    return perm_[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank()) : axis)];
  }

  bool first_has_rank() const {
    const Value* value = node_.in.empty() ? nullptr : node_.in[0];
    return value && value->type.ranked() && value->type.shape->size() == rank();
  }

  const Tensor* constant(size_t i) const {
    return node_.has(i) ? node_.in[i]->constant() : nullptr;
  }

  /// The node on the first input's twin; its other inputs as they are.
  std::vector<Twin> single(Attrs attrs) {
    if (!first_has_rank()) return {};
    Values in{twins_.in_order(node_.in[0], perm_)};
    for (size_t i = 1; i < node_.in.size(); ++i)
      in.push_back(node_.in[i] ? twins_.original(node_.in[i]) : nullptr);
    return finish(std::move(attrs), std::move(in), perm_);
  }

  std::vector<Twin> finish(Attrs attrs, Values in, const Perm& perm) {
    Node& made =
        graph_.add_node(*node_.op, std::move(attrs), std::move(in), node_.outs.size(), node_.name);
    std::vector<Twin> out;
    for (size_t i = 0; i < node_.outs.size(); ++i) {
      // Outputs of fewer axes, such as a scale, have the same order in both layouts.
      const auto& type = made.outs[i]->type;
      const bool plain = type.ranked() && type.shape->size() != perm.size();
      Perm order(plain ? type.shape->size() : perm.size());
      for (size_t axis = 0; axis < order.size(); ++axis)
        order[axis] = plain ? static_cast<int64_t>(axis) : perm[axis];
      out.push_back({made.outs[i], std::move(order)});
    }
    return out;
  }

  /// Whether taking every input in the twin's order copies less than leaving that order would.
  bool worth_following() const {
    double with = 0, without = 0;
    for (const Value* value : node_.in) {
      if (!value || value->constant()) continue;
      const Twin* twin = twins_.find(value);
      (twin && twin->perm == perm_ ? with : without) += weight(value);
    }
    return with >= without;
  }

  /// A constant that broadcasts to the original, reordered to broadcast to the twin.
  Value* reordered_constant(Value* value) {
    const Tensor& tensor = *value->constant();
    if (tensor.elements() == 1 && tensor.rank() <= rank()) return value;
    Shape full;
    for (size_t axis = tensor.rank(); axis < rank(); ++axis) full.push_back(1);
    for (const int64_t size : tensor.shape()) full.push_back(size);
    Value* wide = graph_.add_constant(tensor.reshaped(full));
    return twins_.in_order(wide, perm_);
  }

  std::vector<Twin> elementwise() {
    if (!node_.outs[0]->type.ranked() || node_.outs[0]->type.shape->size() != rank()) return {};
    for (const Value* value : node_.in) {
      if (!value || (value->constant() && value->constant()->rank() <= rank())) continue;
      const size_t own = value->type.ranked() ? value->type.shape->size() : kMaxRank + 1;
      if (own != rank() && own != 0) return {};
    }
    if (!worth_following()) return {};
    Values in;
    for (Value* value : node_.in) {
      if (!value)
        in.push_back(nullptr);
      else if (value->constant())
        in.push_back(reordered_constant(value));
      else
        in.push_back(value->type.shape->empty() ? twins_.original(value)
                                                : twins_.in_order(value, perm_));
    }
    return finish(node_.attrs, std::move(in), perm_);
  }

  template <typename S>
  std::vector<Twin> along_axis(S attrs) {
    attrs.axis = moved(attrs.axis);
    return single(Attrs::of(std::move(attrs)));
  }

  std::vector<Twin> join(Concat attrs) {
    if (!worth_following()) return {};
    attrs.axis = moved(attrs.axis);
    Values in;
    for (Value* value : node_.in) {
      if (!value->type.ranked() || value->type.shape->size() != rank()) return {};
      in.push_back(twins_.in_order(value, perm_));
    }
    return finish(Attrs::of(attrs), std::move(in), perm_);
  }

  template <typename S>
  std::vector<Twin> quantise(S attrs) {
    if (attrs.block_size != 0) return {};
    const auto& scale = node_.in[1]->type.shape;
    if (!scale || scale->size() > 1) return {};
    if (!first_has_rank()) return {};
    const auto own_rank = static_cast<int64_t>(rank());
    const bool per_tensor = scale->empty() || attrs.axis < -own_rank || attrs.axis >= own_rank;
    if (!per_tensor) attrs.axis = moved(attrs.axis);
    return single(Attrs::of(std::move(attrs)));
  }

  /// Ops that know both layouts by an attribute.
  template <typename S>
  std::vector<Twin> windowed(S attrs) {
    if (attrs.channels_last || perm_ != channels_first_perm(rank())) return {};
    for (size_t i = 1; i < node_.outs.size(); ++i)
      if (!node_.outs[i]->users().empty() || graph_.is_output(node_.outs[i])) return {};
    attrs.channels_last = true;
    return single(Attrs::of(std::move(attrs)));
  }

  /// Outputs beside the first are values per channel.
  std::vector<Twin> normalise(BatchNormalization attrs) {
    if (attrs.channels_last || perm_ != channels_first_perm(rank())) return {};
    attrs.channels_last = true;
    return single(Attrs::of(attrs));
  }

  /// Gradients of such ops: the first `activations` inputs are in the layout; sizes that follow
  /// them are reordered.
  template <typename S>
  std::vector<Twin> backward(S attrs, size_t activations) {
    if (attrs.channels_last || perm_ != channels_first_perm(rank()) || !first_has_rank()) return {};
    if (!worth_following()) return {};
    attrs.channels_last = true;
    Values in;
    for (size_t i = 0; i < node_.in.size(); ++i) {
      Value* value = node_.in[i];
      if (i < activations)
        in.push_back(twins_.in_order(value, perm_));
      else
        in.push_back(twins_.original(value));
    }
    if (node_.as<AveragePoolBackward>()) in[1] = reordered_sizes(graph_, in[1], rank());
    return finish(Attrs::of(std::move(attrs)), std::move(in), perm_);
  }

  std::vector<Twin> resample(Resize attrs) {
    if (attrs.axes.empty())
      for (size_t axis = 0; axis < rank(); ++axis) attrs.axes.push_back(static_cast<int64_t>(axis));
    for (int64_t& axis : attrs.axes) axis = moved(axis);
    return single(Attrs::of(std::move(attrs)));
  }

  std::vector<int64_t> all_axes(size_t count) const {
    std::vector<int64_t> axes;
    for (size_t axis = 0; axis < count; ++axis) axes.push_back(static_cast<int64_t>(axis));
    return axes;
  }

  /// The node with the axes listed by its input `at` moved; without that input it lists them all.
  std::vector<Twin> with_axes(size_t at, size_t count) {
    if (!first_has_rank() || (node_.has(at) && !constant(at))) return {};
    auto axes = node_.has(at) ? constant(at)->to_ints() : all_axes(count);
    for (int64_t& axis : axes) axis = moved(axis);
    Values in{twins_.in_order(node_.in[0], perm_)};
    for (size_t i = 1; i < std::max(node_.in.size(), at + 1); ++i) {
      if (i == at)
        in.push_back(graph_.add_constant(Tensor::ints(axes)));
      else
        in.push_back(node_.has(i) ? twins_.original(node_.in[i]) : nullptr);
    }
    return finish(node_.attrs, std::move(in), perm_);
  }

  std::vector<Twin> pad() { return with_axes(3, rank()); }

  std::vector<Twin> slice() {
    const auto& starts = node_.in[1]->type.shape;
    if (!starts || starts->size() != 1 || !(*starts)[0].constant()) return {};
    return with_axes(3, static_cast<size_t>(*(*starts)[0].constant()));
  }

  /// The order of the axes that are left when some of the original are dropped.
  Perm without(const std::vector<int64_t>& axes) const {
    std::vector<char> dropped(rank(), 0);
    for (const int64_t axis : axes)
      dropped[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank()) : axis)] = 1;
    Perm left, sorted;
    for (size_t axis = 0; axis < rank(); ++axis)
      if (!dropped[axis]) left.push_back(perm_[axis]);
    sorted = left;
    std::sort(sorted.begin(), sorted.end());
    for (int64_t& axis : left)
      axis = std::lower_bound(sorted.begin(), sorted.end(), axis) - sorted.begin();
    return left;
  }

  std::vector<Twin> reduce() {
    const ReduceAttrs attrs = reduce_attrs(node_);
    if (attrs.noop_with_empty_axes || !node_.has(1)) return {};
    return drop_axes(!attrs.keepdims);
  }

  std::vector<Twin> squeeze() { return node_.has(1) ? drop_axes(true) : std::vector<Twin>{}; }

  std::vector<Twin> drop_axes(bool dropped) {
    const Tensor* given = constant(1);
    if (!given || given->elements() == 0) return {};
    const auto axes = given->to_ints();
    auto out = with_axes(1, 0);
    if (dropped && !out.empty()) out[0].perm = without(axes);
    return out;
  }

  std::vector<Twin> sizes(const ShapeOf& attrs) {
    if (attrs.start != 0 || attrs.end || !first_has_rank()) return {};
    Value* listed = graph_.add(ShapeOf{}, {twins_.in_order(node_.in[0], perm_)}, node_.name);
    Value* own = graph_.add(Gather{}, {listed, graph_.add_constant(Tensor::ints(perm_))});
    return {{own, {0}}};
  }

  Twins& twins_;
  Graph& graph_;
  const Node& node_;
  Perm perm_;
};

}  // namespace

std::vector<Twin> follow_layout(Twins& twins, const Node& node) {
  return Follower(twins, node).build();
}

}  // namespace dais
