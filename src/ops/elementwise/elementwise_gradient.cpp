// Gradients of the family: for one operand the derivative as a formula of input and output, where
// the output is preferred (it is often needed anyway, and the input can then go early).
#include <numbers>

#include "ops/cast/cast.h"
#include "ops/elementwise/elementwise_internal.h"
#include "ops/gradient.h"

namespace dais {
namespace {

struct Unary {
  Term x, y, dy;
  double a, b;  ///< parameters
};

Term normal_density(const Term& x) {
  return apply<Exp>(x * x * -0.5) * (0.5 * std::numbers::inv_sqrtpi * std::numbers::sqrt2);
}

Term gelu_slope(const Term& x) {
  const Term share = apply<Erf>(x * (0.5 * std::numbers::sqrt2)) * 0.5 + 0.5;
  return share + x * normal_density(x);
}

Term gelu_tanh_slope(const Term& x) {
  const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const Term square = x * x;
  const Term t = apply<Tanh>(x * (square * 0.044715 + 1.0) * scale);
  return (t + 1.0) * 0.5 + x * (1.0 - t * t) * (square * (3 * 0.044715) + 1.0) * (0.5 * scale);
}

Term mish_slope(const Term& x) {
  const Term t = apply<Tanh>(apply<Softplus>(x));
  return t + x * (1.0 - t * t) * apply<Sigmoid>(x);
}

Term swish_slope(const Term& x, double alpha) {
  const Term s = apply<Sigmoid>(x * alpha);
  return s + x * alpha * s * (1.0 - s);
}

/// Functions that bend at zero: dy above, `below` elsewhere. The output's sign tells as much as the
/// input's where the slope below is positive.
Term bent(const Unary& u, const Term& below, double slope_below) {
  return where((slope_below > 0 ? u.y : u.x) > 0, u.dy, below);
}

/// Gradients of functions that are cut or bent somewhere; nothing for others.
std::optional<Term> piecewise(Scalar function, const Unary& u) {
  const auto& [x, y, dy, a, b] = u;
  switch (function) {
    case Scalar::relu: return where(y > 0, dy, 0);
    case Scalar::leaky_relu: return bent(u, dy * a, a);
    case Scalar::elu: return bent(u, dy * (a > 0 ? y + a : apply<Exp>(x) * a), a);
    case Scalar::celu: return where(x > 0, dy, dy * apply<Exp>(x / a));
    case Scalar::selu: return where(x > 0, dy * b, dy * apply<Exp>(x) * (a * b));
    case Scalar::hard_sigmoid: return where(y > 0, where(y < 1, dy * a, 0), 0);
    case Scalar::hard_swish: return where(x < 3, where(x > -3, dy * (x / 3 + 0.5), 0), dy);
    case Scalar::thresholded_relu: return where(x > a, dy, 0);
    case Scalar::shrink: return where(apply<Abs>(x) > a, dy, 0);
    default: return std::nullopt;
  }
}

/// dy times the derivative of a smooth function; nothing for others.
std::optional<Term> smooth(Scalar function, const Unary& u) {
  const auto& [x, y, dy, a, b] = u;
  switch (function) {
    case Scalar::abs: return dy * apply<Sign>(x);
    case Scalar::acos: return -(dy / apply<Sqrt>(1.0 - x * x));
    case Scalar::acosh: return dy / apply<Sqrt>(x * x - 1);
    case Scalar::asin: return dy / apply<Sqrt>(1.0 - x * x);
    case Scalar::asinh: return dy / apply<Sqrt>(x * x + 1);
    case Scalar::atan: return dy / (x * x + 1);
    case Scalar::atanh: return dy / (1.0 - x * x);
    case Scalar::cos: return -(dy * apply<Sin>(x));
    case Scalar::cosh: return dy * apply<Sinh>(x);
    case Scalar::erf: return dy * apply<Exp>(-(x * x)) * (2 * std::numbers::inv_sqrtpi);
    case Scalar::exp: return dy * y;
    case Scalar::log: return dy / x;
    case Scalar::neg: return -dy;
    case Scalar::reciprocal: return -(dy * y * y);
    case Scalar::sigmoid: return dy * y * (1.0 - y);
    case Scalar::sin: return dy * apply<Cos>(x);
    case Scalar::sinh: return dy * apply<Cosh>(x);
    case Scalar::sqrt: return dy * 0.5 / y;
    case Scalar::tan: return dy * (y * y + 1);
    case Scalar::tanh: return dy * (1.0 - y * y);
    case Scalar::softplus: return dy * apply<Sigmoid>(x);
    case Scalar::softsign: {
      const Term rest = 1.0 - apply<Abs>(y);
      return dy * rest * rest;
    }
    case Scalar::mish: return dy * mish_slope(x);
    case Scalar::swish: return dy * swish_slope(x, a);
    case Scalar::gelu: return dy * gelu_slope(x);
    case Scalar::gelu_tanh: return dy * gelu_tanh_slope(x);
    default: return std::nullopt;
  }
}

/// x^e: a constant exponent saves the general power.
Term power_slope(const Term& x, const Term& y, Value* exponent) {
  Graph& g = *x.graph;
  const Tensor* constant = exponent->constant();
  if (constant && constant->elements() == 1) {
    const double e = constant->to_double();
    if (e == 1) return Term(g, filled_like(g, 1, x));
    if (e == 2) return x * 2;
    if (e == 3) return x * x * 3;
    if (e == 0.5) return 0.5 / y;
    Value* less = number_like(g, e - 1, x);
    return Term(g, g.add(Pow{}, {x, less})) * e;
  }
  if (exponent->type.dtype != x.value->type.dtype)
    exponent = g.add(Cast{.to = x.value->type.dtype}, {exponent});
  const Term e(g, exponent);
  return Term(g, g.add(Pow{}, {x, e - 1})) * e;
}

Values gradient_pow(Graph& g, const Node& n, const Term& dy) {
  const Term x(g, n.in[0]), y(g, n.outs[0]);
  Values out{reduce_to(g, dy * power_slope(x, y, n.in[1]), x), nullptr};
  if (!is_float(n.in[1]->type.dtype) || n.in[1]->constant()) return out;
  // A base of zero gives zero (or no number at all), whatever the exponent's neighbourhood.
  const Term slope = where(x > 0, y * apply<Log>(x), 0);
  Value* raw = dy * slope;
  if (raw->type.dtype != n.in[1]->type.dtype) raw = g.add(Cast{.to = n.in[1]->type.dtype}, {raw});
  out[1] = reduce_to(g, raw, n.in[1]);
  return out;
}

/// Functions of two operands; each result is still to be reduced to its operand.
Values gradient_binary(Scalar function, Graph& g, const Node& n, const Term& dy) {
  const Term a(g, n.in[0]), b(g, n.in[1]), y(g, n.outs[0]);
  switch (function) {
    case Scalar::add: return {dy, dy};
    case Scalar::sub: return {dy, -dy};
    case Scalar::mul: return {dy * b, dy * a};
    case Scalar::div: return {dy / b, -(dy * y / b)};
    // y = a - b * quotient, where the quotient is whole.
    case Scalar::mod_floor:
    case Scalar::mod_trunc: return {dy, dy * (y - a) / b};
    case Scalar::prelu: return {where(a < 0, dy * b, dy), where(a < 0, dy * a, 0)};
    default: return {nullptr, nullptr};
  }
}

/// The gradient goes to the operand that gave the result; to the first of equals.
Values gradient_extreme(Graph& g, const Node& n, const Term& dy) {
  Values out;
  Term rest = dy;
  for (Value* operand : n.in) {
    if (out.size() + 1 == n.in.size()) {
      out.push_back(rest);
      break;
    }
    const Term chosen(g, g.add(Equal{}, {operand, n.outs[0]}));
    out.push_back(where(chosen, rest, 0));
    rest = where(chosen, Term(g, number_like(g, 0, dy)), rest);
  }
  return out;
}

/// min(max(x, low), high).
Values gradient_clip(Graph& g, const Node& n, const Term& dy) {
  Values out(n.in.size(), nullptr);
  const Term x(g, n.in[0]);
  Term rest = dy, raised = x;
  if (n.has(1)) raised = Term(g, g.add(Max{}, {x, n.in[1]}));
  const auto part = [&](Value* condition) {
    const Term holds(g, condition);
    const Term taken = where(holds, rest, 0);
    rest = where(holds, Term(g, number_like(g, 0, dy)), rest);
    return taken;
  };
  if (n.has(2)) out[2] = part(g.add(Greater{}, {raised, n.in[2]}));
  if (n.has(1)) out[1] = part(g.add(Less{}, {x, n.in[1]}));
  out[0] = rest;
  return out;
}

Values gradient_where(Graph& g, const Node& n, const Term& dy) {
  const Term condition(g, n.in[0]);
  return {nullptr, where(condition, dy, 0), where(condition, Term(g, number_like(g, 0, dy)), dy)};
}

Values raw_gradient(const ScalarCall& call, Graph& g, const Node& n, const Term& dy) {
  switch (call.function) {
    case Scalar::min:
    case Scalar::max: return gradient_extreme(g, n, dy);
    case Scalar::sum: return Values(n.in.size(), dy);
    case Scalar::mean: return Values(n.in.size(), dy / static_cast<double>(n.in.size()));
    case Scalar::clip: return gradient_clip(g, n, dy);
    case Scalar::where: return gradient_where(g, n, dy);
    default: break;
  }
  if (n.in.size() == 2) return gradient_binary(call.function, g, n, dy);
  const Unary unary{{g, n.in[0]}, {g, n.outs[0]}, dy, call.parameters[0], call.parameters[1]};
  std::optional<Term> found = smooth(call.function, unary);
  if (!found) found = piecewise(call.function, unary);
  return {found ? found->value : nullptr};
}

}  // namespace

Values gradient_elementwise(Graph& g, const Node& n, std::span<Value* const> dy) {
  const ScalarCall call = *scalar_call(n);
  const Term from(g, dy[0]);
  if (call.function == Scalar::pow) return gradient_pow(g, n, from);
  Values out = raw_gradient(call, g, n, from);
  for (size_t i = 0; i < out.size(); ++i)
    if (out[i]) out[i] = n.in[i]->type == n.outs[0]->type ? out[i] : reduce_to(g, out[i], n.in[i]);
  return out;
}

}  // namespace dais
