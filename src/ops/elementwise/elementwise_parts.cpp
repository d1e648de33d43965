// Activations that ONNX named late, in the functions that it always had. Narrow floats are computed
// in f32, so that only the result is rounded.
#include <numbers>

#include "ops/elementwise/elementwise_internal.h"
#include "ops/parts.h"

namespace dais {
namespace {

/// A wide x and what the functions are written with.
struct Formula {
  Graph& graph;
  Value* x;

  Value* number(double value) const { return add_scalar(graph, value, x->type.dtype); }
  template <typename Function>
  Value* of(Function function, Value* a) const {
    return graph.add(function, {a});
  }
  Value* sum(Value* a, Value* b) const { return graph.add(Add{}, {a, b}); }
  Value* product(Value* a, Value* b) const { return graph.add(Mul{}, {a, b}); }
};

/// x / 2 * (1 + erf(x / sqrt(2))), or with tanh(sqrt(2 / pi) * (x + 0.044715 x^3)) for erf.
Value* gelu(const Formula& f, bool approximate) {
  Value* inner;
  if (approximate) {
    Value* cube = f.product(f.product(f.x, f.x), f.x);
    Value* bent = f.sum(f.x, f.product(cube, f.number(0.044715)));
    const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    inner = f.of(Tanh{}, f.product(bent, f.number(scale)));
  } else {
    inner = f.of(Erf{}, f.product(f.x, f.number(1 / std::numbers::sqrt2)));
  }
  return f.product(f.product(f.x, f.number(0.5)), f.sum(inner, f.number(1)));
}

Value* swish(const Formula& f, float alpha) {
  Value* inner = alpha == 1 ? f.x : f.product(f.x, f.number(static_cast<double>(alpha)));
  return f.product(f.x, f.of(Sigmoid{}, inner));
}

Values decompose(Graph& graph, const Node& node) {
  Value* x = node.in[0];
  const Formula f{graph, as_type(graph, x, wide_type(*x))};
  Value* y;
  if (const auto* attrs = node.as<Gelu>())
    y = gelu(f, attrs->approximate == "tanh");
  else if (const auto* attrs = node.as<Swish>())
    y = swish(f, attrs->alpha);
  else if (node.as<Mish>())
    y = f.product(f.x, f.of(Tanh{}, f.of(Softplus{}, f.x)));
  else
    y = f.product(f.x, f.of(HardSigmoid{.alpha = 1.0f / 6, .beta = 0.5f}, f.x));
  return {as_type(graph, y, x->type.dtype)};
}

}  // namespace

ElementwiseParts elementwise_parts(Scalar function) {
  switch (function) {
    case Scalar::gelu:
    case Scalar::swish:
    case Scalar::mish:
    case Scalar::hard_swish: return decompose;
    default: return nullptr;
  }
}

}  // namespace dais
