#include "passes/heads.h"

#include "ops/reshape/reshape.h"
#include "ops/transpose/transpose.h"

namespace dais {

std::optional<SplitHeads> split_heads(const Value* value) {
  Node* turn = producer_as<Transpose>(value);
  if (!turn || turn->as<Transpose>()->perm != std::vector<int64_t>{0, 2, 1, 3}) return std::nullopt;
  Node* split = producer_as<Reshape>(turn->in[0]);
  if (!split || !split->in[0]->type.ranked() || !turn->in[0]->type.ranked()) return std::nullopt;
  const Dims &from = *split->in[0]->type.shape, &to = *turn->in[0]->type.shape;
  if (from.size() != 3 || to.size() != 4 || !to[2].is_constant() || !to[3].is_constant())
    return std::nullopt;
  if (!(from[0] == to[0]) || !(from[1] == to[1])) return std::nullopt;
  return SplitHeads{split->in[0], *to[2].constant()};
}

Value* split_again(Graph& graph, Value* joined, const Value* like) {
  const Node& turn = *like->producer();
  const Node& split = *turn.in[0]->producer();
  Value* parts = graph.add(*split.as<Reshape>(), {joined, split.in[1]});
  return graph.add(*turn.as<Transpose>(), {parts});
}

}  // namespace dais
