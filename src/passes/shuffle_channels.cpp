// Channels that a model shuffles by reshape, transpose and reshape of channels-first data are
// shuffled in channels-last order when the layout pass has left the data so on both sides.

#include "ops/reshape/reshape.h"
#include "ops/transpose/transpose.h"
#include "passes/layout.h"
#include "passes/passes.h"

namespace dais {
namespace {

const Node* transpose_by(const Value* value, const Perm& perm) {
  const Node* node = producer_as<Transpose>(value);
  return node && node->as<Transpose>()->perm == perm ? node : nullptr;
}

/// transpose(reshape(transpose(reshape(transpose(x)))))) of x [N, H, W, g * k], where the inner
/// transpose exchanges g and k.
Values shuffle_last(Graph& graph, Node& node) {
  if (!node.as<Transpose>() || node.as<Transpose>()->perm != Perm{0, 2, 3, 1}) return {};
  const Node* merged = producer_as<Reshape>(node.in[0]);
  const Node* turned = merged ? transpose_by(merged->in[0], {0, 2, 1, 3, 4}) : nullptr;
  const Node* split = turned ? producer_as<Reshape>(turned->in[0]) : nullptr;
  const Node* first = split ? transpose_by(split->in[0], {0, 3, 1, 2}) : nullptr;
  if (!first) return {};
  const auto &from = first->in[0]->type.shape, &parts = split->outs[0]->type.shape,
             &to = node.outs[0]->type.shape;
  if (!from || !parts || !to || parts->size() != 5 || from->size() != 4 || !(*from == *to))
    return {};
  const Dim &groups = (*parts)[1], &each = (*parts)[2];
  const bool fits = (*parts)[0] == (*from)[0] && (*parts)[3] == (*from)[1] &&
                    (*parts)[4] == (*from)[2] && groups * each == (*from)[3];
  if (!fits || !groups.is_constant() || !each.is_constant()) return {};
  Shape wide, back;
  for (size_t axis = 0; axis < 4; ++axis) {
    if (!(*from)[axis].is_constant()) return {};
    back.push_back(*(*from)[axis].constant());
    if (axis < 3) wide.push_back(*(*from)[axis].constant());
  }
  wide.push_back(*groups.constant());
  wide.push_back(*each.constant());
  Value* cut = graph.add(Reshape{}, {first->in[0], graph.add_constant(Tensor::ints(wide.dims()))});
  Value* swapped = graph.add(Transpose{{0, 1, 2, 4, 3}}, {cut}, turned->name);
  return {graph.add(Reshape{}, {swapped, graph.add_constant(Tensor::ints(back.dims()))})};
}

constexpr Rule kRules[] = {{"shuffle_last", shuffle_last}};

}  // namespace

bool shuffle_channels(Graph& graph, const Target&) { return rewrite(graph, kRules); }

}  // namespace dais
