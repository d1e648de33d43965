#include "ops/concat/concat.h"
#include "ops/transpose/moves.h"

namespace dais {

Moves concat_moves(const Node& node, const Sizes& sizes) {
  const size_t axis = normalize_axis(node.as<Concat>()->axis, sizes.out[0].rank());
  const AxisSplit whole = split_axis(sizes.out[0], axis);
  std::vector<Move> out;
  int64_t at = 0;
  for (size_t i = 0; i < sizes.in.size(); ++i) {
    const int64_t run = sizes.in[i][axis] * whole.inner;
    if (run > 0)
      out.push_back({.in = i,
                     .to = at,
                     .space = Shape{whole.outer, run},
                     .from_steps = {run, 1},
                     .to_steps = {whole.size * whole.inner, 1}});
    at += run;
  }
  return out;
}

}  // namespace dais
