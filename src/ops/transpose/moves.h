#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"
#include "ops/strided.h"

namespace dais {

/// A copy over one iteration space from an input of a node to one of its outputs:
/// out[to + index·to_steps] = in[from + index·from_steps], all in elements; `to_steps` are dense
/// along the last axis that is longer than 1.
struct Move {
  size_t in = 0, out = 0;
  int64_t from = 0, to = 0;
  Shape space;
  Strides from_steps = {}, to_steps = {};
};

/// What a node that only moves elements does for fixed sizes; nothing when these are not possible
/// (the reference says why). Its sizes and places must be constants: accepts_copy.
using Shapes = std::span<const Shape>;
using Moves = std::optional<std::vector<Move>>;
using ListMoves = Moves (*)(const Node& node, Shapes in, Shapes out);

Moves concat_moves(const Node& node, Shapes in, Shapes out);
Moves depth_to_space_moves(const Node& node, Shapes in, Shapes out);
Moves expand_moves(const Node& node, Shapes in, Shapes out);
/// All elements in their order: what another shape or element type of the same size needs.
Moves same_moves(const Node& node, Shapes in, Shapes out);
Moves slice_moves(const Node& node, Shapes in, Shapes out);
Moves space_to_depth_moves(const Node& node, Shapes in, Shapes out);
Moves split_moves(const Node& node, Shapes in, Shapes out);
Moves tile_moves(const Node& node, Shapes in, Shapes out);
Moves transpose_moves(const Node& node, Shapes in, Shapes out);

}  // namespace dais
