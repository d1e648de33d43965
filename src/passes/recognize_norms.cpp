#include <algorithm>

#include "ops/norm/norm.h"
#include "ops/reduce/reduce.h"
#include "passes/passes.h"
#include "passes/recognize.h"

namespace dais {
namespace {

/// The operand when a value is its mean over the last axis, kept as 1.
Value* mean_of(const Value* value) {
  Node* node = producer_as<ReduceMean>(value);
  if (!node || !node->as<ReduceMean>()->keepdims || !node->has(1)) return nullptr;
  const auto axes = node->in[1]->known();
  const Type& type = node->in[0]->type;
  if (!axes || axes->size() != 1 || !type.ranked()) return nullptr;
  const auto rank = static_cast<int64_t>(type.shape->size());
  return (*axes)[0].is(-1) || (*axes)[0].is(rank - 1) ? node->in[0] : nullptr;
}

/// Mean square and epsilon of sqrt(mean(d * d) + epsilon).
struct Root {
  Value* d = nullptr;
  double epsilon = 0;
};
std::optional<Root> root_of(const Value* value) {
  Node* sqrt = producer_as<Sqrt>(value);
  if (!sqrt) return std::nullopt;
  const Values addends = addends_of(sqrt->in[0]);
  for (size_t i = 0; i < addends.size(); ++i) {
    const auto epsilon = constant_number(addends[i]);
    Value* square = epsilon ? mean_of(addends[1 - i]) : nullptr;
    if (!square) continue;
    const Factors factors = factors_of(square);
    if (factors.number == 1 && factors.values.size() == 2 && factors.values[0] == factors.values[1])
      return Root{factors.values[0], *epsilon};
  }
  return std::nullopt;
}

/// One value per element of the last axis.
bool covers_last_axis(const Value* value, const Value* x) {
  return value->type.ranked() && x->type.ranked() && value->type.shape->size() == 1 &&
         !x->type.shape->empty() && value->type.shape->back() == x->type.shape->back() &&
         value->type.dtype == x->type.dtype;
}

/// d / root * scale in any order: what is divided, and the scale.
struct Normalised {
  Value *d = nullptr, *scale = nullptr;
  double epsilon = 0;
};
std::optional<Normalised> normalised(Value* value) {
  const Factors factors = factors_of(value);
  if (factors.number != 1 || value->type.dtype != DType::f32) return std::nullopt;
  Normalised out;
  Value* divided = nullptr;
  std::optional<Root> root;
  for (Value* part : factors.values) {
    if (Node* inverse = producer_as<Reciprocal>(part); inverse && !root) {
      root = root_of(inverse->in[0]);
      if (root) continue;
    }
    if (Node* quotient = producer_as<Div>(part); quotient && !root) {
      root = root_of(quotient->in[1]);
      if (root) {
        const bool one = constant_number(quotient->in[0]) == 1.0;
        if (one) continue;
        part = quotient->in[0];
      }
    }
    (divided ? out.scale : divided) = part;
  }
  const size_t wanted = factors.values.size();
  if (!root || wanted < 2 || wanted > 3 || !divided || !out.scale) return std::nullopt;
  if (divided != root->d) std::swap(divided, out.scale);
  if (divided != root->d || !covers_last_axis(out.scale, divided)) return std::nullopt;
  out.d = divided;
  out.epsilon = root->epsilon;
  return out;
}

/// The operand when d is x - mean(x).
Value* centered(const Value* d) {
  Node* sub = producer_as<Sub>(d);
  return sub && mean_of(sub->in[1]) == sub->in[0] ? sub->in[0] : nullptr;
}

Values layer_norm(Graph& graph, Node& node) {
  if (!node.as<Add>()) return {};
  for (size_t i = 0; i < 2; ++i) {
    const auto found = normalised(node.in[i]);
    Value* x = found ? centered(found->d) : nullptr;
    if (x && covers_last_axis(node.in[1 - i], x))
      return {graph.add(LayerNormalization{.epsilon = static_cast<float>(found->epsilon)},
                        {x, found->scale, node.in[1 - i]})};
  }
  return {};
}

Values rms_norm(Graph& graph, Node& node) {
  if (!node.as<Mul>()) return {};
  const auto found = normalised(node.outs[0]);
  if (!found || centered(found->d)) return {};
  return {graph.add(RMSNormalization{.epsilon = static_cast<float>(found->epsilon)},
                    {found->d, found->scale})};
}

constexpr Rule kRules[] = {{"layer_norm", layer_norm}, {"rms_norm", rms_norm}};

}  // namespace

/// Layer and root-mean-square normalisation over the last axis, where exporters spelled them out.
bool recognize_norms(Graph& graph, const Target&) { return rewrite(graph, kRules); }

}  // namespace dais
