#include <algorithm>

#include "ops/slice/slice.h"
#include "ops/transpose/copy_plan_cpu.h"
#include "ops/transpose/strided_copy.h"

namespace dais {
namespace {

/// The first index that a slice takes; an empty result has none.
int64_t first_index(int64_t start, int64_t step, int64_t size) {
  if (start < 0) start = start < -size ? -1 : start + size;
  return step > 0 ? std::clamp<int64_t>(start, 0, size) : std::clamp<int64_t>(start, 0, size - 1);
}

CopyList plan(const Node& node, const Sizes& sizes, Isa isa) {
  const Shape &from = sizes.in[0], &to = sizes.out[0];
  if (to.elements() == 0) return std::vector<PlannedCopy>{};
  const auto starts = node.in[1]->constant()->to_ints();
  std::vector<int64_t> axes, steps(starts.size(), 1);
  if (node.has(3)) axes = node.in[3]->constant()->to_ints();
  for (size_t i = axes.size(); i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (node.has(4)) steps = node.in[4]->constant()->to_ints();
  Strides walk = dense_steps(from);
  const Shape strides = strides_of(from);
  int64_t origin = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t axis = normalize_axis(axes[i], from.rank());
    origin += first_index(starts[i], steps[i], from[axis]) * strides[axis];
    walk[axis] = to[axis] == 1 ? 0 : strides[axis] * steps[i];
  }
  const size_t size = dtype_size(node.in[0]->type.dtype);
  return {{{.from = origin, .plan = CopyPlan(to, size, walk, dense_steps(to), isa)}}};
}

}  // namespace

namespace ops {
void register_slice_cpu(Kernels& kernels) {
  kernels.add({.name = "slice/runs",
               .op = &Slice::op,
               .accepts = accepts_copy<1, 3, 4>,
               .prepare = copies<plan>});
}
}  // namespace ops
}  // namespace dais
