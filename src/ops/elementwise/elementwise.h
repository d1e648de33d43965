#pragma once

#include <array>

#include "ir/op.h"
#include "ops/elementwise/scalar.h"

namespace dais {

/// A scalar function with its parameters: all that a fused loop needs to know about a node.
/// Parameters by function: leaky_relu, elu, celu, thresholded_relu, swish {alpha}; selu {alpha,
/// gamma}; hard_sigmoid {alpha, beta}; shrink {lambd, bias}; is_inf {negative, positive}.
struct ScalarCall {
  Scalar function;
  std::array<double, 2> parameters{};
};
/// What an elementwise node computes; nothing for nodes of other families. `clip` may lack
/// operands 1 (then unbounded below) and 2 (above).
std::optional<ScalarCall> scalar_call(const Node& node);

/// An elementwise op without attributes.
template <Scalar function>
struct PlainElementwise {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};
Op make_elementwise(Scalar function, const AttrsInfo* attrs);
template <Scalar function>
const Op PlainElementwise<function>::op =
    make_elementwise(function, &AttrsOf<PlainElementwise<function>>::info);

using Abs = PlainElementwise<Scalar::abs>;
using Acos = PlainElementwise<Scalar::acos>;
using Acosh = PlainElementwise<Scalar::acosh>;
using Asin = PlainElementwise<Scalar::asin>;
using Asinh = PlainElementwise<Scalar::asinh>;
using Atan = PlainElementwise<Scalar::atan>;
using Atanh = PlainElementwise<Scalar::atanh>;
using Ceil = PlainElementwise<Scalar::ceil>;
using Cos = PlainElementwise<Scalar::cos>;
using Cosh = PlainElementwise<Scalar::cosh>;
using Erf = PlainElementwise<Scalar::erf>;
using Exp = PlainElementwise<Scalar::exp>;
using Floor = PlainElementwise<Scalar::floor>;
using Log = PlainElementwise<Scalar::log>;
using Neg = PlainElementwise<Scalar::neg>;
using Reciprocal = PlainElementwise<Scalar::reciprocal>;
using Round = PlainElementwise<Scalar::round>;  ///< halves to even
using Sigmoid = PlainElementwise<Scalar::sigmoid>;
using Sign = PlainElementwise<Scalar::sign>;
using Sin = PlainElementwise<Scalar::sin>;
using Sinh = PlainElementwise<Scalar::sinh>;
using Sqrt = PlainElementwise<Scalar::sqrt>;
using Tan = PlainElementwise<Scalar::tan>;
using Tanh = PlainElementwise<Scalar::tanh>;
using Not = PlainElementwise<Scalar::logical_not>;
using BitwiseNot = PlainElementwise<Scalar::bitwise_not>;
using IsNaN = PlainElementwise<Scalar::is_nan>;
using Relu = PlainElementwise<Scalar::relu>;
using HardSwish = PlainElementwise<Scalar::hard_swish>;
using Softplus = PlainElementwise<Scalar::softplus>;
using Softsign = PlainElementwise<Scalar::softsign>;
using Mish = PlainElementwise<Scalar::mish>;
using Add = PlainElementwise<Scalar::add>;
using Sub = PlainElementwise<Scalar::sub>;
using Mul = PlainElementwise<Scalar::mul>;
using Div = PlainElementwise<Scalar::div>;  ///< integers truncate; a zero divisor gives 0
using Pow = PlainElementwise<Scalar::pow>;  ///< of the base's type; the exponent's may differ
using And = PlainElementwise<Scalar::logical_and>;
using Or = PlainElementwise<Scalar::logical_or>;
using Xor = PlainElementwise<Scalar::logical_xor>;
using Equal = PlainElementwise<Scalar::equal>;
using Less = PlainElementwise<Scalar::less>;
using LessOrEqual = PlainElementwise<Scalar::less_or_equal>;
using Greater = PlainElementwise<Scalar::greater>;
using GreaterOrEqual = PlainElementwise<Scalar::greater_or_equal>;
using BitwiseAnd = PlainElementwise<Scalar::bitwise_and>;
using BitwiseOr = PlainElementwise<Scalar::bitwise_or>;
using BitwiseXor = PlainElementwise<Scalar::bitwise_xor>;
using PRelu = PlainElementwise<Scalar::prelu>;  ///< inputs: x, slope
using Min = PlainElementwise<Scalar::min>;      ///< NaN wins, also in Max
using Max = PlainElementwise<Scalar::max>;
using Sum = PlainElementwise<Scalar::sum>;
using Mean = PlainElementwise<Scalar::mean>;
using Clip = PlainElementwise<Scalar::clip>;    ///< inputs: x, optional min, optional max
using Where = PlainElementwise<Scalar::where>;  ///< inputs: condition, x, y; any element type

struct IsInf {
  bool detect_negative = true;
  bool detect_positive = true;
  static constexpr auto fields = std::tuple{field("detect_negative", &IsInf::detect_negative),
                                            field("detect_positive", &IsInf::detect_positive)};
  static const Op op;
};

struct LeakyRelu {
  float alpha = 0.01f;
  static constexpr auto fields = std::tuple{field("alpha", &LeakyRelu::alpha)};
  static const Op op;
};

struct Elu {
  float alpha = 1;
  static constexpr auto fields = std::tuple{field("alpha", &Elu::alpha)};
  static const Op op;
};

struct Celu {
  float alpha = 1;
  static constexpr auto fields = std::tuple{field("alpha", &Celu::alpha)};
  static const Op op;
};

struct Selu {
  float alpha = 1.67326319217681884765625f;
  float gamma = 1.05070102214813232421875f;
  static constexpr auto fields =
      std::tuple{field("alpha", &Selu::alpha), field("gamma", &Selu::gamma)};
  static const Op op;
};

struct HardSigmoid {
  float alpha = 0.2f;
  float beta = 0.5f;
  static constexpr auto fields =
      std::tuple{field("alpha", &HardSigmoid::alpha), field("beta", &HardSigmoid::beta)};
  static const Op op;
};

struct ThresholdedRelu {
  float alpha = 1;
  static constexpr auto fields = std::tuple{field("alpha", &ThresholdedRelu::alpha)};
  static const Op op;
};

struct Shrink {
  float lambd = 0.5f;
  float bias = 0;
  static constexpr auto fields =
      std::tuple{field("lambd", &Shrink::lambd), field("bias", &Shrink::bias)};
  static const Op op;
};

/// x * sigmoid(alpha * x).
struct Swish {
  float alpha = 1;
  static constexpr auto fields = std::tuple{field("alpha", &Swish::alpha)};
  static const Op op;
};

/// x * Phi(x): by erf, or by the tanh formula when `approximate` is "tanh".
struct Gelu {
  std::string approximate = "none";
  static constexpr auto fields = std::tuple{field("approximate", &Gelu::approximate)};
  static const Op op;
};

/// Remainder: of the divisor's sign, or (fmod) of the dividend's. A zero divisor gives NaN, or 0
/// for integers.
struct Mod {
  bool fmod = false;
  static constexpr auto fields = std::tuple{field("fmod", &Mod::fmod)};
  static const Op op;
};

struct BitShift {
  std::string direction;  ///< "LEFT" or "RIGHT"; required
  static constexpr auto fields = std::tuple{field("direction", &BitShift::direction)};
  static const Op op;
};

/// The input itself: a tensor, sequence, optional or map.
struct Identity {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

/// Adds the activation that fused ONNX operators name in attributes ("Relu", "LeakyRelu",
/// "HardSigmoid", …; empty: none). Parameters follow the order of the operator's own attributes.
/// Throws `invalid_model` for a name that is no unary function here.
Value* add_activation(Graph& graph, std::string_view onnx_name, std::span<const float> parameters,
                      Value* x);

}  // namespace dais
