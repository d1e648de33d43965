#include "ops/reshape/reshape.h"
#include "ops/transpose/moves.h"
#include "ops/transpose/strided_copy.h"

namespace dais {

Moves expand_moves(const Node&, Shapes in, Shapes out) {
  const Shape& to = out[0];
  return std::vector<Move>{
      {.space = to, .from_steps = broadcast_strides(in[0], to), .to_steps = dense_steps(to)}};
}

Moves same_moves(const Node&, Shapes in, Shapes out) {
  const Shape all{in[0].elements()};
  if (!(all == Shape{out[0].elements()})) return std::nullopt;
  return std::vector<Move>{{.space = all, .from_steps = {1}, .to_steps = {1}}};
}

}  // namespace dais
