#include "ops/concat/concat.h"
#include "ops/transpose/moves.h"

namespace dais {

Moves concat_moves(const Node& node, Shapes in, Shapes out) {
  const size_t axis = normalize_axis(node.as<Concat>()->axis, out[0].rank());
  const AxisSplit whole = split_axis(out[0], axis);
  std::vector<Move> moves;
  int64_t at = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const int64_t run = in[i][axis] * whole.inner;
    if (run > 0)
      moves.push_back({.in = i,
                       .to = at,
                       .space = Shape{whole.outer, run},
                       .from_steps = {run, 1},
                       .to_steps = {whole.size * whole.inner, 1}});
    at += run;
  }
  return moves;
}

}  // namespace dais
