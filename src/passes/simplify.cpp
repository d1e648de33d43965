// Local simplifications whose result is the same function with fewer nodes.

#include <cmath>

#include "ops/elementwise/elementwise.h"
#include "ops/random/random.h"
#include "passes/passes.h"

namespace dais {
namespace {

std::optional<float> scalar(const Value* value) {
  const Tensor* tensor = value ? value->constant() : nullptr;
  if (!tensor || tensor->elements() != 1 || tensor->dtype() != DType::f32) return {};
  return tensor->data<float>()[0];
}

bool is_near(std::optional<float> value, float wanted) {
  return value && std::abs(*value - wanted) <= 1e-6F * std::abs(wanted);
}

/// Outside training dropout passes its input on.
Values drop_dropout(Graph& graph, Node& node) {
  if (!node.as<Dropout>() || graph.is_output(node.outs[0])) return {};
  if (node.has(2) && (!node.in[2]->constant() || node.in[2]->constant()->to_double() != 0))
    return {};
  // A mask would still be wanted.
  for (size_t i = 1; i < node.outs.size(); ++i)
    if (!node.outs[i]->users().empty() || graph.is_output(node.outs[i])) return {};
  Values out(node.outs.size(), nullptr);
  out[0] = node.in[0];
  return out;
}

Values drop_identity(Graph& graph, Node& node) {
  if (!node.as<Identity>()) return {};
  // Every output of the graph keeps a value of its own.
  const bool free = node.in[0]->producer() && !graph.is_output(node.in[0]);
  if (graph.is_output(node.outs[0]) && !free) return {};
  return {node.in[0]};
}

/// The other operand of a product or sum with a constant scalar, and that scalar.
struct WithScalar {
  Value* value = nullptr;
  float scalar = 0;
};
template <typename S>
WithScalar with_scalar(const Node* node) {
  if (!node || !node->as<S>()) return {};
  for (const size_t at : {size_t{0}, size_t{1}})
    if (const auto found = scalar(node->in[at])) return {node->in[1 - at], *found};
  return {};
}

/// x when the value is min(max(x + 3, 0), 6), else nullptr.
Value* clipped_shift(const Value* value) {
  const Node* clip = producer_as<Clip>(value);
  if (!clip || !clip->has(1) || !clip->has(2)) return nullptr;
  if (scalar(clip->in[1]) != 0.0F || scalar(clip->in[2]) != 6.0F) return nullptr;
  const WithScalar shift = with_scalar<Add>(producer_as<Add>(clip->in[0]));
  return shift.value && shift.scalar == 3.0F ? shift.value : nullptr;
}

/// The value that is divided by 6 here, else nullptr.
Value* sixth_of(const Node* node) {
  if (!node) return nullptr;
  if (node->as<Div>() && scalar(node->in[1]) == 6.0F) return node->in[0];
  const WithScalar product = with_scalar<Mul>(node);
  return product.value && is_near(product.scalar, 1.0F / 6) ? product.value : nullptr;
}

/// The operands of a product of x and a gate of x: x when `gate_input` finds it in either.
template <typename Gate>
Value* gated(const Node* product, Gate&& gate_input) {
  if (!product || !product->as<Mul>()) return nullptr;
  for (const size_t at : {size_t{0}, size_t{1}}) {
    Value* x = product->in[1 - at];
    if (x && gate_input(product->in[at]) == x) return x;
  }
  return nullptr;
}

/// x * min(max(x + 3, 0), 6) / 6 in its usual spellings.
Values recognise_hard_swish(Graph& graph, Node& node) {
  Value* x = nullptr;
  if (const Value* whole = sixth_of(&node)) x = gated(producer_as<Mul>(whole), clipped_shift);
  if (!x)
    x = gated(&node, [](const Value* gate) -> Value* {
      const Node* made = gate->producer();
      if (const auto* hard = made ? made->as<HardSigmoid>() : nullptr)
        return is_near(hard->alpha, 1.0F / 6) && hard->beta == 0.5F ? made->in[0] : nullptr;
      const Value* clipped = sixth_of(made);
      return clipped ? clipped_shift(clipped) : nullptr;
    });
  if (!x || x->type.dtype != DType::f32 || !(x->type == node.outs[0]->type)) return {};
  return {graph.add(HardSwish{}, {x}, node.name)};
}

/// The constant operand of a binary node and the other one.
struct WithConstant {
  Value *value = nullptr, *constant = nullptr;
};
template <typename S>
WithConstant with_constant(const Node* node) {
  if (!node || !node->as<S>()) return {};
  for (const size_t at : {size_t{0}, size_t{1}})
    if (node->in[at]->constant() && !node->in[1 - at]->constant())
      return {node->in[1 - at], node->in[at]};
  return {};
}

bool widens(const Value* from, const Value* to) { return !(from->type == to->type); }

/// (x * a) * c and (x + a) + c take one constant.
template <typename S>
Values merge_same(Graph& graph, Node& node) {
  const WithConstant outer = with_constant<S>(&node);
  if (!outer.value || outer.value->type.dtype != DType::f32) return {};
  const WithConstant inner = with_constant<S>(outer.value->producer());
  if (!inner.value || !used_once(graph, outer.value)) return {};
  if (widens(inner.value, outer.value) || widens(outer.value, node.outs[0])) return {};
  Value* both = graph.add(S{}, {inner.constant, outer.constant});
  return {graph.add(S{}, {inner.value, both}, node.name)};
}

/// ((x * a) + b) * c becomes x * (a * c) + b * c.
Values merge_affine(Graph& graph, Node& node) {
  const WithConstant outer = with_constant<Mul>(&node);
  if (!outer.value || outer.value->type.dtype != DType::f32) return {};
  const WithConstant sum = with_constant<Add>(outer.value->producer());
  if (!sum.value || !used_once(graph, outer.value)) return {};
  const WithConstant inner = with_constant<Mul>(sum.value->producer());
  if (!inner.value || !used_once(graph, sum.value)) return {};
  if (widens(inner.value, node.outs[0]) || widens(sum.value, node.outs[0])) return {};
  Value* factor = graph.add(Mul{}, {inner.constant, outer.constant});
  Value* term = graph.add(Mul{}, {sum.constant, outer.constant});
  return {graph.add(Add{}, {graph.add(Mul{}, {inner.value, factor}), term}, node.name)};
}

constexpr Rule kRules[] = {{"drop_dropout", drop_dropout},
                           {"drop_identity", drop_identity},
                           {"recognise_hard_swish", recognise_hard_swish},
                           {"merge_products", merge_same<Mul>},
                           {"merge_sums", merge_same<Add>},
                           {"merge_affine", merge_affine}};

}  // namespace

bool simplify(Graph& graph, const Target&) { return rewrite(graph, kRules); }

}  // namespace dais
