#include "ops/transpose/moves.h"
#include "ops/transpose/strided_copy.h"
#include "ops/transpose/transpose.h"

namespace dais {

Moves transpose_moves(const Node& node, Shapes in, Shapes out) {
  const auto& perm = node.as<Transpose>()->perm;
  const Shape& from = in[0];
  const Shape strides = strides_of(from);
  Move move{.space = out[0], .to_steps = dense_steps(out[0])};
  const size_t rank = from.rank();
  for (size_t axis = 0; axis < rank; ++axis)
    move.from_steps[axis] =
        strides[perm.empty() ? rank - 1 - axis : normalize_axis(perm[axis], rank)];
  return std::vector<Move>{move};
}

}  // namespace dais
