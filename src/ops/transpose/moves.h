#pragma once

#include "ops/strided.h"
#include "runtime/kernel.h"

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
using Moves = std::optional<std::vector<Move>>;
using ListMoves = Moves (*)(const Node& node, const Sizes& sizes);

Moves concat_moves(const Node& node, const Sizes& sizes);
Moves depth_to_space_moves(const Node& node, const Sizes& sizes);
Moves expand_moves(const Node& node, const Sizes& sizes);
Moves slice_moves(const Node& node, const Sizes& sizes);
Moves space_to_depth_moves(const Node& node, const Sizes& sizes);
Moves split_moves(const Node& node, const Sizes& sizes);
Moves tile_moves(const Node& node, const Sizes& sizes);
Moves transpose_moves(const Node& node, const Sizes& sizes);

/// Accepts any type of fixed element size; inputs listed must be constants.
template <size_t... constants>
Verdict accepts_copy(const KernelQuery& query) {
  if (query.in_dtype(0) == DType::string) return no("strings are no plain elements");
  const bool known = ((!query.node.has(constants) || query.constant(constants)) && ... && true);
  return known ? yes() : no("sizes or places are known only when running");
}

}  // namespace dais
