#include <algorithm>

#include "ops/slice/slice.h"
#include "ops/transpose/moves.h"
#include "ops/transpose/strided_copy.h"

namespace dais {
namespace {

/// The first index that a slice takes; an empty result has none.
int64_t first_index(int64_t start, int64_t step, int64_t size) {
  if (start < 0) start = start < -size ? -1 : start + size;
  return step > 0 ? std::clamp<int64_t>(start, 0, size) : std::clamp<int64_t>(start, 0, size - 1);
}

}  // namespace

Moves slice_moves(const Node& node, Shapes in, Shapes out) {
  const Shape &from = in[0], &to = out[0];
  if (to.elements() == 0) return std::vector<Move>{};
  const auto starts = node.in[1]->constant()->to_ints();
  std::vector<int64_t> axes, steps(starts.size(), 1);
  if (node.has(3)) axes = node.in[3]->constant()->to_ints();
  for (size_t i = axes.size(); i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (node.has(4)) steps = node.in[4]->constant()->to_ints();
  Move move{.space = to, .from_steps = dense_steps(from), .to_steps = dense_steps(to)};
  const Shape strides = strides_of(from);
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t axis = normalize_axis(axes[i], from.rank());
    move.from += first_index(starts[i], steps[i], from[axis]) * strides[axis];
    move.from_steps[axis] = to[axis] == 1 ? 0 : strides[axis] * steps[i];
  }
  return std::vector<Move>{move};
}

}  // namespace dais
