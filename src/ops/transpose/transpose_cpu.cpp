#include "ops/transpose/copy_plan_cpu.h"
#include "ops/transpose/strided_copy.h"
#include "ops/transpose/transpose.h"

namespace dais {
namespace {

CopyList plan(const Node& node, const Sizes& sizes, Isa isa) {
  const auto& perm = node.as<Transpose>()->perm;
  const Shape& from = sizes.in[0];
  const Shape strides = strides_of(from);
  Strides steps{};
  const size_t rank = from.rank();
  for (size_t axis = 0; axis < rank; ++axis)
    steps[axis] = strides[perm.empty() ? rank - 1 - axis : normalize_axis(perm[axis], rank)];
  const size_t size = dtype_size(node.in[0]->type.dtype);
  return {{{.plan = CopyPlan(sizes.out[0], size, steps, dense_steps(sizes.out[0]), isa)}}};
}

}  // namespace

namespace ops {
void register_transpose_cpu(Kernels& kernels) {
  kernels.add({.name = "transpose/blocks",
               .op = &Transpose::op,
               .accepts = accepts_copy<>,
               .prepare = copies<plan>});
}
}  // namespace ops
}  // namespace dais
