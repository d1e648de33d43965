// Non-maximum suppression gives as many rows as there are boxes left, which only running tells, so
// it could not run on a device. Choosing the boxes, which is the work, has sizes that are known
// before; listing them stays on the CPU.

#include <algorithm>

#include "ops/nms/nms.h"
#include "passes/passes.h"

namespace dais {
namespace {

/// A threshold of one number, or none; false: it may be either.
bool take_threshold(const Node& node, size_t i, Value*& threshold) {
  threshold = nullptr;
  if (!node.has(i)) return true;
  const auto shape = node.in[i]->type.static_shape();
  if (!shape) return false;
  if (shape->elements() == 1) threshold = node.in[i];
  return shape->elements() <= 1;
}

Values split(Graph& graph, Node& node, const Target& target) {
  const auto* attrs = node.as<NonMaxSuppression>();
  if (!attrs || !node.has(2)) return {};
  const Tensor* limit = node.in[2]->constant();
  const Type& scores = node.in[1]->type;
  if (!limit || limit->elements() != 1 || !scores.ranked() || scores.shape->size() != 3) return {};
  const auto count = scores.shape->back().constant();
  if (!count) return {};
  const int64_t most = std::min(limit->to_ints()[0], *count);
  Value *overlap = nullptr, *least = nullptr;
  if (most <= 0 || !take_threshold(node, 3, overlap) || !take_threshold(node, 4, least)) return {};
  Node& choose =
      graph.add_node(ChooseBoxes{.center_point_box = attrs->center_point_box, .most = most},
                     {node.in[0], node.in[1], overlap, least}, 1, node.name);
  if (!target.has_kernel(choose)) {
    graph.erase(choose);
    return {};
  }
  return {graph.add(ListBoxes{}, {choose.outs[0]})};
}

constexpr Rule kRules[] = {{"split_nms", nullptr, split}};

}  // namespace

bool split_nms(Graph& graph, const Target& target) { return rewrite(graph, kRules, &target); }

}  // namespace dais
