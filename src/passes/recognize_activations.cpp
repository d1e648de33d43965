#include "passes/passes.h"
#include "passes/recognize.h"

namespace dais {
namespace {

/// Gate and value of a product x * gate with one number; the gate comes first.
struct Gated {
  double number = 1;
  Value *gate = nullptr, *x = nullptr;
};

/// The two ways to see a product of two values.
std::vector<Gated> readings(Node& node) {
  if (!node.as<Mul>() || node.outs[0]->type.dtype != DType::f32) return {};
  const Factors factors = factors_of(node.outs[0]);
  if (factors.values.size() != 2) return {};
  return {{factors.number, factors.values[0], factors.values[1]},
          {factors.number, factors.values[1], factors.values[0]}};
}

/// x / 2 * (1 + erf(x / sqrt(2))), in whatever order it was written.
Values gelu(Graph& graph, Node& node) {
  for (const Gated& r : readings(node)) {
    const Node* erf =
        is_about(r.number, 0.5) ? producer_as<Erf>(beside_number(r.gate, 1)) : nullptr;
    if (erf && factors_of(erf->in[0]).is(std::sqrt(0.5), {r.x})) return {graph.add(Gelu{}, {r.x})};
  }
  return {};
}

/// sqrt(2 / pi) * (x + 0.044715 x^3), also with x taken out.
bool is_tanh_argument(Value* value, const Value* x) {
  const Factors outer = factors_of(value);
  if (!is_about(outer.number, std::sqrt(2 / M_PI))) return false;
  for (Value* part : outer.values) {
    const Values addends = addends_of(part);
    for (size_t i = 0; i < addends.size(); ++i) {
      const Factors cubic = factors_of(addends[i]);
      if (outer.values.size() == 1 && addends[1 - i] == x && cubic.is(0.044715, {x, x, x}))
        return true;
      const bool taken_out = outer.values.size() == 2 && constant_number(addends[1 - i]) == 1.0 &&
                             (outer.values[0] == x || outer.values[1] == x);
      if (taken_out && cubic.is(0.044715, {x, x})) return true;
    }
  }
  return false;
}

Values gelu_tanh(Graph& graph, Node& node) {
  for (const Gated& r : readings(node)) {
    const Node* tanh =
        is_about(r.number, 0.5) ? producer_as<Tanh>(beside_number(r.gate, 1)) : nullptr;
    if (tanh && is_tanh_argument(tanh->in[0], r.x))
      return {graph.add(Gelu{.approximate = "tanh"}, {r.x})};
  }
  return {};
}

/// x * sigmoid(x).
Values silu(Graph& graph, Node& node) {
  for (const Gated& r : readings(node)) {
    const Node* sigmoid = r.number == 1 ? producer_as<Sigmoid>(r.gate) : nullptr;
    if (sigmoid && sigmoid->in[0] == r.x) return {graph.add(Swish{.alpha = 1}, {r.x})};
  }
  return {};
}

constexpr Rule kRules[] = {{"gelu", gelu}, {"gelu_tanh", gelu_tanh}, {"silu", silu}};

}  // namespace

/// Gelu in both forms and Swish, where exporters spelled them out.
bool recognize_activations(Graph& graph, const Target&) { return rewrite(graph, kRules); }

}  // namespace dais
