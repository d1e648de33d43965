#include <algorithm>

#include "ops/attention/attention.h"
#include "ops/concat/concat.h"
#include "ops/reshape/reshape.h"
#include "ops/slice/slice.h"
#include "ops/transpose/transpose.h"
#include "passes/heads.h"
#include "passes/passes.h"
#include "passes/recognize.h"

namespace dais {
namespace {

std::optional<int64_t> known_number(const Value* value) {
  const auto known = value ? value->known() : std::nullopt;
  if (!known || known->size() != 1) return std::nullopt;
  return (*known)[0].constant();
}

/// Whether value is x's last axis from `first` to `last`.
bool is_part(const Value* value, const Value* x, int64_t first, int64_t last) {
  Node* node = producer_as<Slice>(value);
  if (!node || node->in[0] != x || !node->has(3)) return false;
  const auto begin = known_number(node->in[1]), end = known_number(node->in[2]);
  const auto axis = known_number(node->in[3]);
  const auto step = node->has(4) ? known_number(node->in[4]) : 1;
  const auto size = x->type.shape->back().constant();
  const auto rank = std::ssize(*x->type.shape);
  if (!begin || !end || !axis || step != 1 || !size) return false;
  return (*axis == -1 || *axis == rank - 1) && *begin == first && std::min(*end, *size) == last;
}

/// The table [N, L, half] behind a value [N, 1, L, 2 * half] that holds it twice.
Value* table_of(const Value* value, int64_t half) {
  Node* twice = producer_as<Concat>(value);
  if (!twice || twice->in.size() != 2 || twice->in[0] != twice->in[1]) return nullptr;
  const int64_t axis = twice->as<Concat>()->axis;
  if (axis != -1 && axis != 3) return nullptr;
  Node* wide = producer_as<Unsqueeze>(twice->in[0]);
  if (!wide || known_number(wide->in[1]) != 1) return nullptr;
  const Type& type = wide->in[0]->type;
  return type.ranked() && type.shape->size() == 3 && type.shape->back().is(half) ? wide->in[0]
                                                                                 : nullptr;
}

/// x * cos + concat(-x[half:], x[:half]) * sin.
Values rotary(Graph& graph, Node& node) {
  if (!node.as<Add>()) return {};
  for (size_t i = 0; i < 2; ++i) {
    Node *straight = producer_as<Mul>(node.in[i]), *turned = producer_as<Mul>(node.in[1 - i]);
    if (!straight || !turned) return {};
    for (size_t j = 0; j < 2; ++j)
      for (size_t k = 0; k < 2; ++k) {
        Value* x = straight->in[j];
        Node* joined = producer_as<Concat>(turned->in[k]);
        if (!joined || joined->in.size() != 2 || !x->type.ranked() || x->type.shape->size() != 4)
          continue;
        const auto size = x->type.shape->back().constant();
        Node* negative = producer_as<Neg>(joined->in[0]);
        if (!size || !negative || !is_part(negative->in[0], x, *size / 2, *size) ||
            !is_part(joined->in[1], x, 0, *size / 2))
          continue;
        Value* cos = table_of(straight->in[1 - j], *size / 2);
        Value* sin = table_of(turned->in[1 - k], *size / 2);
        if (cos && sin && cos->type == sin->type)
          return {graph.add(RotaryEmbedding{}, {x, cos, sin})};
      }
  }
  return {};
}

/// Rotary embedding before heads are split apart: the split then meets attention, which needs none.
Values rotary_before_split(Graph& graph, Node& node) {
  const auto* attrs = node.as<RotaryEmbedding>();
  const auto heads = attrs ? split_heads(node.in[0]) : std::nullopt;
  if (!heads || !used_once(graph, node.in[0])) return {};
  RotaryEmbedding moved = *attrs;
  moved.num_heads = heads->count;
  Values in = node.in;
  in[0] = heads->joined;
  Value* y = graph.add(moved, in);
  return {split_again(graph, y, node.in[0])};
}

constexpr Rule kRules[] = {{"rotary", rotary}, {"rotary_before_split", rotary_before_split}};

}  // namespace

/// Rotary embedding of halves, where exporters spelled it out.
bool recognize_rotary(Graph& graph, const Target&) { return rewrite(graph, kRules); }

}  // namespace dais
