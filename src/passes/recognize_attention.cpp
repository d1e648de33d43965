#include <algorithm>

#include "ops/attention/attention.h"
#include "ops/concat/concat.h"
#include "ops/matmul/matmul.h"
#include "ops/reshape/reshape.h"
#include "ops/softmax/softmax.h"
#include "ops/transpose/transpose.h"
#include "passes/heads.h"
#include "passes/passes.h"
#include "passes/recognize.h"

namespace dais {
namespace {

bool four_axes(const Value* value) {
  return value->type.ranked() && value->type.shape->size() == 4 && value->type.dtype == DType::f32;
}

/// What was found between the two products of an attention.
struct Scores {
  Value *q = nullptr, *k_turned = nullptr;
  double scale = 1;
  Values added;  ///< masks
  struct Hidden {
    Value *where, *fill;
  };
  std::vector<Hidden> hidden;  ///< where false, scores are replaced by a number

  bool masked() const { return !added.empty() || !hidden.empty(); }
};

/// Takes numbers off a factor of the product: scores are scaled by them.
Value* unscaled(Value* value, double& scale) {
  for (size_t i = 0; i < 2; ++i)
    if (Node* node = producer_as<Mul>(value))
      if (const auto number = constant_number(node->in[1 - i])) {
        scale *= *number;
        return node->in[i];
      }
  if (Node* node = producer_as<Div>(value))
    if (const auto number = constant_number(node->in[1]); number && *number != 0) {
      scale /= *number;
      return node->in[0];
    }
  return value;
}

bool match_scores(Value* value, Scores& out, int depth = 0) {
  Node* node = value->producer();
  if (!node || depth > 8 || !four_axes(value)) return false;
  if (node->as<MatMul>()) {
    out.q = unscaled(node->in[0], out.scale);
    out.k_turned = unscaled(node->in[1], out.scale);
    return four_axes(out.q) && four_axes(out.k_turned);
  }
  if (node->as<Add>()) {
    for (size_t i = 0; i < 2; ++i) {
      Scores inner = out;
      if (!match_scores(node->in[i], inner, depth + 1)) continue;
      out = std::move(inner);
      out.added.push_back(node->in[1 - i]);
      return true;
    }
    return false;
  }
  if (node->as<Where>()) {
    if (!constant_number(node->in[2]) || !match_scores(node->in[1], out, depth + 1)) return false;
    if (out.masked()) return false;
    out.hidden.push_back({node->in[0], node->in[2]});
    return true;
  }
  double scale = 1;
  Value* inner = unscaled(value, scale);
  if (inner == value || !match_scores(inner, out, depth + 1) || out.masked()) return false;
  out.scale *= scale;
  return true;
}

/// K [N, heads, L, size] from what the product takes, [N, heads, size, L].
Value* turned_back(Graph& graph, Value* k_turned) {
  Node* node = producer_as<Transpose>(k_turned);
  if (!node || node->as<Transpose>()->perm.size() != 4) return nullptr;
  std::vector<int64_t> perm = node->as<Transpose>()->perm;
  std::swap(perm[2], perm[3]);
  if (perm == std::vector<int64_t>{0, 1, 2, 3}) return node->in[0];
  return graph.add(Transpose{.perm = perm}, {node->in[0]});
}

/// [N, kv, L, size] behind a value that repeats each head: Reshape(Expand(Unsqueeze(x, 2))).
Value* unrepeated(Value* value) {
  Node* join = producer_as<Reshape>(value);
  Node* expand = join ? producer_as<Expand>(join->in[0]) : nullptr;
  Node* open = expand ? producer_as<Unsqueeze>(expand->in[0]) : nullptr;
  if (!open || !four_axes(open->in[0]) || !expand->outs[0]->type.ranked()) return value;
  const Dims &from = *open->in[0]->type.shape, &wide = *expand->outs[0]->type.shape;
  const Dims &single = *open->outs[0]->type.shape, &to = *value->type.shape;
  if (single.size() != 5 || wide.size() != 5 || !single[2].is(1) || to.size() != 4) return value;
  const bool fits = wide[0] == from[0] && wide[1] == from[1] && wide[3] == from[2] &&
                    wide[4] == from[3] && to[0] == from[0] && to[1] == wide[1] * wide[2] &&
                    to[2] == from[2] && to[3] == from[3];
  return fits ? open->in[0] : value;
}

/// Past and new part of keys or values that a Concat joins along their length.
Node* joined_with_past(const Value* value) {
  Node* node = producer_as<Concat>(value);
  if (!node || node->in.size() != 2 || !four_axes(node->in[0]) || !four_axes(node->in[1]))
    return nullptr;
  const int64_t axis = node->as<Concat>()->axis;
  return axis == 2 || axis == -2 ? node : nullptr;
}

/// Masks as one value that is added, or nullptr without any.
Value* one_mask(Graph& graph, const Scores& scores) {
  Value* mask = nullptr;
  for (const auto& [where, fill] : scores.hidden) {
    Value* zero = graph.add_constant(Tensor::scalar<float>(0));
    mask = graph.add(Where{}, {where, zero, fill});
  }
  for (Value* added : scores.added) mask = mask ? graph.add(Add{}, {mask, added}) : added;
  return mask;
}

bool mask_fits(const Value* mask, const Dims& scores) {
  if (!mask->type.ranked() || mask->type.dtype == DType::f64) return false;
  const Dims& shape = *mask->type.shape;
  if (shape.empty() || shape.size() > 4) return false;
  // Attention takes a last axis of 1 for a mask of one key.
  return !shape.back().is(1) || scores.back().is(1);
}

Values attention(Graph& graph, Node& node) {
  if (!node.as<MatMul>() || !four_axes(node.outs[0])) return {};
  Node* softmax = producer_as<Softmax>(node.in[0]);
  if (!softmax || !four_axes(node.in[1])) return {};
  const int64_t axis = softmax->as<Softmax>()->axis;
  Scores scores;
  if ((axis != -1 && axis != 3) || !match_scores(softmax->in[0], scores)) return {};
  const Dims& shape = *softmax->in[0]->type.shape;
  for (const Value* mask : scores.added)
    if (!mask_fits(mask, shape)) return {};
  for (const auto& hidden : scores.hidden)
    if (!mask_fits(hidden.where, shape)) return {};
  if (!producer_as<Transpose>(scores.k_turned)) return {};
  Value* k = unrepeated(turned_back(graph, scores.k_turned));
  Value* v = unrepeated(node.in[1]);
  const Dims &keys = *k->type.shape, &values = *v->type.shape;
  const auto q_heads = (*scores.q->type.shape)[1].constant(), kv_heads = keys[1].constant();
  const bool fits = q_heads && kv_heads && *kv_heads > 0 && *q_heads % *kv_heads == 0 &&
                    values[1].is(*kv_heads) && values[2] == keys[2] &&
                    keys[0] == (*scores.q->type.shape)[0] && values[0] == keys[0];
  if (!fits) return {};
  Attention attrs{.scale = static_cast<float>(scores.scale)};
  Node *k_join = joined_with_past(k), *v_join = joined_with_past(v);
  Value* mask = one_mask(graph, scores);
  if (!k_join || !v_join) return {graph.add(attrs, {scores.q, k, v, mask})};
  Node& made = graph.add_node(
      attrs, {scores.q, k_join->in[1], v_join->in[1], mask, k_join->in[0], v_join->in[0]}, 3);
  if (!(made.outs[1]->type == k->type) || !(made.outs[2]->type == v->type)) {
    graph.erase(made);
    return {graph.add(attrs, {scores.q, k, v, mask})};
  }
  graph.replace_uses(k, made.outs[1]);
  graph.replace_uses(v, made.outs[2]);
  return {made.outs[0]};
}

/// Heads need not be split and turned for attention, nor joined again behind it.
Values joined_heads(Graph& graph, Node& node) {
  if (!node.as<Reshape>()) return {};
  Node* turn = producer_as<Transpose>(node.in[0]);
  if (!turn || turn->as<Transpose>()->perm != std::vector<int64_t>{0, 2, 1, 3}) return {};
  Node* old = producer_as<Attention>(turn->in[0]);
  if (!old || !used_once(graph, old->outs[0]) || !used_once(graph, turn->outs[0])) return {};
  const auto q = split_heads(old->in[0]), k = split_heads(old->in[1]), v = split_heads(old->in[2]);
  if (!q || !k || !v || k->count != v->count) return {};
  Attention attrs = *old->as<Attention>();
  attrs.q_num_heads = q->count;
  attrs.kv_num_heads = k->count;
  Values in = old->in;
  in[0] = q->joined;
  in[1] = k->joined;
  in[2] = v->joined;
  Graph::InsertBefore place(graph, old);
  Node& made = graph.add_node(attrs, in, old->outs.size());
  if (!(made.outs[0]->type == node.outs[0]->type)) {
    graph.erase(made);
    return {};
  }
  for (size_t i = 1; i < made.outs.size(); ++i) graph.replace_uses(old->outs[i], made.outs[i]);
  return {made.outs[0]};
}

constexpr Rule kRules[] = {{"attention", attention}, {"joined_heads", joined_heads}};

}  // namespace

/// Scaled dot-product attention, where exporters spelled it out: with masks, repeated key heads,
/// and past keys and values joined in front.
bool recognize_attention(Graph& graph, const Target&) { return rewrite(graph, kRules); }

}  // namespace dais
