#include "ops/split/split.h"
#include "ops/transpose/moves.h"

namespace dais {

/// The pieces' sizes are those of the outputs, whether they came from a constant or not: what the
/// run finds different from inference is refused before a kernel is bound.
Moves split_moves(const Node& node, Shapes in, Shapes out) {
  const size_t axis = normalize_axis(node.as<Split>()->axis, in[0].rank());
  const AxisSplit whole = split_axis(in[0], axis);
  std::vector<Move> moves;
  int64_t at = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t run = out[i][axis] * whole.inner;
    if (run > 0)
      moves.push_back({.out = i,
                       .from = at,
                       .space = Shape{whole.outer, run},
                       .from_steps = {whole.size * whole.inner, 1},
                       .to_steps = {run, 1}});
    at += run;
  }
  return moves;
}

}  // namespace dais
