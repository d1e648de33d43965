#include "ops/tile/tile.h"
#include "ops/transpose/moves.h"
#include "ops/transpose/strided_copy.h"

namespace dais {

/// Every axis becomes two: how often, and how long.
Moves tile_moves(const Node&, Shapes in, Shapes out) {
  const Shape &from = in[0], &to = out[0];
  if (to.elements() == 0) return std::vector<Move>{};
  if (from.rank() > kMaxRank / 2) return std::nullopt;
  const Shape strides = strides_of(from);
  Move move;
  for (size_t axis = 0; axis < from.rank(); ++axis) {
    move.space.push_back(to[axis] / from[axis]);
    move.from_steps[move.space.rank()] = strides[axis];
    move.space.push_back(from[axis]);
  }
  move.to_steps = dense_steps(move.space);
  return std::vector<Move>{move};
}

}  // namespace dais
