#include "ops/fused/rows.h"

#include <algorithm>

#include "ops/norm/norm.h"
#include "ops/reduce/reduce.h"
#include "ops/softmax/softmax.h"

namespace dais {
namespace {

/// The reduced axes when they are the last ones.
std::optional<size_t> trailing(const Node& node, size_t rank) {
  std::vector<bool> reduced(rank, true);
  if (node.has(1)) {
    if (!node.in[1]->constant()) return std::nullopt;
    const auto axes = node.in[1]->constant()->to_ints();
    if (!axes.empty()) reduced.assign(rank, false);
    for (const int64_t axis : axes) reduced[normalize_axis(axis, rank)] = true;
    if (axes.empty() && reduce_attrs(node).noop_with_empty_axes) return std::nullopt;
  } else if (reduce_attrs(node).noop_with_empty_axes) {
    return std::nullopt;
  }
  const auto first = std::find(reduced.begin(), reduced.end(), true);
  if (std::find(first, reduced.end(), false) != reduced.end()) return std::nullopt;
  return static_cast<size_t>(reduced.end() - first);
}

template <typename Struct>
std::optional<size_t> last_only(const Node& node, size_t rank) {
  if (normalize_axis(node.as<Struct>()->axis, rank) + 1 != rank) return std::nullopt;
  return 1;
}

template <typename Struct>
std::optional<size_t> normed(const Node& node, size_t rank) {
  if (node.outs.size() != 1) return std::nullopt;
  return rank - normalize_axis(node.as<Struct>()->axis, rank);
}

}  // namespace

std::optional<size_t> joined_axes(const Node& node) {
  if (node.in.empty() || !node.has(0) || !node.in[0]->type.ranked()) return std::nullopt;
  const size_t rank = node.in[0]->type.shape->size();
  if (rank == 0) return std::nullopt;
  if (reduction_of(*node.op)) return trailing(node, rank);
  if (node.as<Softmax>()) return last_only<Softmax>(node, rank);
  if (node.as<LogSoftmax>()) return last_only<LogSoftmax>(node, rank);
  if (node.as<LayerNormalization>()) return normed<LayerNormalization>(node, rank);
  if (node.as<RMSNormalization>()) return normed<RMSNormalization>(node, rank);
  return std::nullopt;
}

Dims row_shape(const Dims& shape, size_t axes) {
  Dims out = shape;
  for (size_t i = shape.size() - axes; i < shape.size(); ++i) out[i] = Dim(1);
  return out;
}

}  // namespace dais
