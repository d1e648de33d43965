#include "ops/tile/tile.h"
#include "ops/transpose/moves.h"
#include "ops/transpose/strided_copy.h"

namespace dais {

/// Every axis becomes two: how often, and how long.
Moves tile_moves(const Node&, const Sizes& sizes) {
  const Shape &from = sizes.in[0], &to = sizes.out[0];
  if (to.elements() == 0) return std::vector<Move>{};
  if (from.rank() > kMaxRank / 2) return std::nullopt;
  const Shape strides = strides_of(from);
  Move out;
  for (size_t axis = 0; axis < from.rank(); ++axis) {
    out.space.push_back(to[axis] / from[axis]);
    out.from_steps[out.space.rank()] = strides[axis];
    out.space.push_back(from[axis]);
  }
  out.to_steps = dense_steps(out.space);
  return std::vector<Move>{out};
}

}  // namespace dais
