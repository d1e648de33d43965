#include "ops/elementwise/elementwise.h"

#include <unordered_map>

#include "ir/inference.h"
#include "ops/elementwise/elementwise_internal.h"
#include "ops/gradient.h"

namespace dais {
namespace {

using enum ElementKinds;
constexpr ElementKinds numbers = real | whole;

template <auto member>
struct MemberOf;
template <typename Struct, typename Member, Member Struct::*member>
struct MemberOf<member> {
  using Type = Struct;
};

/// Copies attribute members into the parameters, in order.
template <auto... members>
void take(const void* attrs, ScalarCall& call) {
  size_t i = 0;
  ((call.parameters[i++] =
        static_cast<double>(static_cast<const typename MemberOf<members>::Type*>(attrs)->*members)),
   ...);
}

void take_gelu(const void* attrs, ScalarCall& call) {
  if (static_cast<const Gelu*>(attrs)->approximate == "tanh") call.function = Scalar::gelu_tanh;
}
void take_mod(const void* attrs, ScalarCall& call) {
  if (static_cast<const Mod*>(attrs)->fmod) call.function = Scalar::mod_trunc;
}
void take_shift(const void* attrs, ScalarCall& call) {
  if (static_cast<const BitShift*>(attrs)->direction == "RIGHT")
    call.function = Scalar::shift_right;
}

// The first ONNX version, the kinds of elements, the number of operands (0: any), whether the
// result is boolean, and where parameters come from.
constexpr ElementwiseRow kRows[] = {
    {Scalar::abs, &Abs::op, "abs", "Abs", 1, numbers, 1},
    {Scalar::acos, &Acos::op, "acos", "Acos", 7, real, 1},
    {Scalar::acosh, &Acosh::op, "acosh", "Acosh", 9, real, 1},
    {Scalar::asin, &Asin::op, "asin", "Asin", 7, real, 1},
    {Scalar::asinh, &Asinh::op, "asinh", "Asinh", 9, real, 1},
    {Scalar::atan, &Atan::op, "atan", "Atan", 7, real, 1},
    {Scalar::atanh, &Atanh::op, "atanh", "Atanh", 9, real, 1},
    {Scalar::ceil, &Ceil::op, "ceil", "Ceil", 1, real, 1},
    {Scalar::cos, &Cos::op, "cos", "Cos", 7, real, 1},
    {Scalar::cosh, &Cosh::op, "cosh", "Cosh", 9, real, 1},
    {Scalar::erf, &Erf::op, "erf", "Erf", 9, numbers, 1},
    {Scalar::exp, &Exp::op, "exp", "Exp", 1, real, 1},
    {Scalar::floor, &Floor::op, "floor", "Floor", 1, real, 1},
    {Scalar::log, &Log::op, "log", "Log", 1, real, 1},
    {Scalar::neg, &Neg::op, "neg", "Neg", 1, numbers, 1},
    {Scalar::reciprocal, &Reciprocal::op, "reciprocal", "Reciprocal", 1, real, 1},
    {Scalar::round, &Round::op, "round", "Round", 11, real, 1},
    {Scalar::sigmoid, &Sigmoid::op, "sigmoid", "Sigmoid", 1, real, 1},
    {Scalar::sign, &Sign::op, "sign", "Sign", 9, numbers, 1},
    {Scalar::sin, &Sin::op, "sin", "Sin", 7, real, 1},
    {Scalar::sinh, &Sinh::op, "sinh", "Sinh", 9, real, 1},
    {Scalar::sqrt, &Sqrt::op, "sqrt", "Sqrt", 1, real, 1},
    {Scalar::tan, &Tan::op, "tan", "Tan", 7, real, 1},
    {Scalar::tanh, &Tanh::op, "tanh", "Tanh", 1, real, 1},
    {Scalar::logical_not, &Not::op, "not", "Not", 1, boolean, 1},
    {Scalar::bitwise_not, &BitwiseNot::op, "bitwise_not", "BitwiseNot", 18, whole, 1},
    {Scalar::is_nan, &IsNaN::op, "is_nan", "IsNaN", 9, real, 1, true},
    {Scalar::is_inf, &IsInf::op, "is_inf", "IsInf", 10, real, 1, true,
     take<&IsInf::detect_negative, &IsInf::detect_positive>},
    {Scalar::relu, &Relu::op, "relu", "Relu", 1, numbers, 1},
    {Scalar::leaky_relu, &LeakyRelu::op, "leaky_relu", "LeakyRelu", 1, real, 1, false,
     take<&LeakyRelu::alpha>},
    {Scalar::elu, &Elu::op, "elu", "Elu", 1, real, 1, false, take<&Elu::alpha>},
    {Scalar::celu, &Celu::op, "celu", "Celu", 12, real, 1, false, take<&Celu::alpha>},
    {Scalar::selu, &Selu::op, "selu", "Selu", 1, real, 1, false, take<&Selu::alpha, &Selu::gamma>},
    {Scalar::hard_sigmoid, &HardSigmoid::op, "hard_sigmoid", "HardSigmoid", 1, real, 1, false,
     take<&HardSigmoid::alpha, &HardSigmoid::beta>},
    {Scalar::hard_swish, &HardSwish::op, "hard_swish", "HardSwish", 14, real, 1},
    {Scalar::softplus, &Softplus::op, "softplus", "Softplus", 1, real, 1},
    {Scalar::softsign, &Softsign::op, "softsign", "Softsign", 1, real, 1},
    {Scalar::thresholded_relu, &ThresholdedRelu::op, "thresholded_relu", "ThresholdedRelu", 1, real,
     1, false, take<&ThresholdedRelu::alpha>},
    {Scalar::shrink, &Shrink::op, "shrink", "Shrink", 9, numbers, 1, false,
     take<&Shrink::lambd, &Shrink::bias>},
    {Scalar::mish, &Mish::op, "mish", "Mish", 18, real, 1},
    {Scalar::swish, &Swish::op, "swish", "Swish", 24, real, 1, false, take<&Swish::alpha>},
    {Scalar::gelu, &Gelu::op, "gelu", "Gelu", 20, real, 1, false, take_gelu},
    {Scalar::add, &Add::op, "add", "Add", 1, numbers, 2},
    {Scalar::sub, &Sub::op, "sub", "Sub", 1, numbers, 2},
    {Scalar::mul, &Mul::op, "mul", "Mul", 1, numbers, 2},
    {Scalar::div, &Div::op, "div", "Div", 1, numbers, 2},
    {Scalar::pow, &Pow::op, "pow", "Pow", 1, numbers, 2},
    {Scalar::mod_floor, &Mod::op, "mod", "Mod", 10, numbers, 2, false, take_mod},
    {Scalar::logical_and, &And::op, "and", "And", 1, boolean, 2},
    {Scalar::logical_or, &Or::op, "or", "Or", 1, boolean, 2},
    {Scalar::logical_xor, &Xor::op, "xor", "Xor", 1, boolean, 2},
    {Scalar::equal, &Equal::op, "equal", "Equal", 1, numbers | boolean | text, 2, true},
    {Scalar::less, &Less::op, "less", "Less", 1, numbers, 2, true},
    {Scalar::less_or_equal, &LessOrEqual::op, "less_or_equal", "LessOrEqual", 12, numbers, 2, true},
    {Scalar::greater, &Greater::op, "greater", "Greater", 1, numbers, 2, true},
    {Scalar::greater_or_equal, &GreaterOrEqual::op, "greater_or_equal", "GreaterOrEqual", 12,
     numbers, 2, true},
    {Scalar::shift_left, &BitShift::op, "bit_shift", "BitShift", 11, whole, 2, false, take_shift},
    {Scalar::bitwise_and, &BitwiseAnd::op, "bitwise_and", "BitwiseAnd", 18, whole, 2},
    {Scalar::bitwise_or, &BitwiseOr::op, "bitwise_or", "BitwiseOr", 18, whole, 2},
    {Scalar::bitwise_xor, &BitwiseXor::op, "bitwise_xor", "BitwiseXor", 18, whole, 2},
    {Scalar::prelu, &PRelu::op, "prelu", "PRelu", 1, numbers, 2},
    {Scalar::min, &Min::op, "min", "Min", 1, numbers, 0},
    {Scalar::max, &Max::op, "max", "Max", 1, numbers, 0},
    {Scalar::sum, &Sum::op, "sum", "Sum", 1, real, 0},
    {Scalar::mean, &Mean::op, "mean", "Mean", 1, real, 0},
    {Scalar::clip, &Clip::op, "clip", "Clip", 1, numbers, 3},
    {Scalar::where, &Where::op, "where", "Where", 9, numbers | boolean | text | other, 3},
};

const ElementwiseRow& row_of(Scalar function) {
  for (const auto& row : kRows)
    if (row.function == function) return row;
  DAIS_CHECK(false);
  return kRows[0];
}

}  // namespace

std::span<const ElementwiseRow> elementwise_rows() { return kRows; }

const ElementwiseRow* elementwise_row(const Op& op) {
  static const auto rows = [] {
    std::unordered_map<const Op*, const ElementwiseRow*> out;
    for (const auto& row : kRows) out[row.op] = &row;
    return out;
  }();
  const auto found = rows.find(&op);
  return found == rows.end() ? nullptr : found->second;
}

const ElementwiseRow* elementwise_row(std::string_view onnx_name) {
  for (const auto& row : kRows)
    if (row.onnx == onnx_name) return &row;
  return nullptr;
}

std::optional<ScalarCall> scalar_call(const Node& node) {
  const ElementwiseRow* row = elementwise_row(*node.op);
  if (!row) return std::nullopt;
  ScalarCall call{row->function};
  if (row->parameters) row->parameters(node.attrs.data(), call);
  return call;
}

/// The rule that differentiates a function; none where its result is no real number.
decltype(Op::gradient) gradient_of(const ElementwiseRow& row) {
  if (row.logical || !(row.kinds & real)) return nullptr;
  switch (row.function) {
    case Scalar::ceil:
    case Scalar::floor:
    case Scalar::round:
    case Scalar::sign: return zero_gradient;
    default: return gradient_elementwise;
  }
}

Op make_elementwise(Scalar function, const AttrsInfo* attrs) {
  const ElementwiseRow& row = row_of(function);
  return {
      .name = row.name,
      .attrs = attrs,
      .infer = infer_elementwise,
      .reference = reference_elementwise,
      .decompose = elementwise_parts(function),
      .gradient = gradient_of(row),
      .onnx = elementwise_onnx_rules(row),
  };
}

const Op IsInf::op = make_elementwise(Scalar::is_inf, &AttrsOf<IsInf>::info);
const Op LeakyRelu::op = make_elementwise(Scalar::leaky_relu, &AttrsOf<LeakyRelu>::info);
const Op Elu::op = make_elementwise(Scalar::elu, &AttrsOf<Elu>::info);
const Op Celu::op = make_elementwise(Scalar::celu, &AttrsOf<Celu>::info);
const Op Selu::op = make_elementwise(Scalar::selu, &AttrsOf<Selu>::info);
const Op HardSigmoid::op = make_elementwise(Scalar::hard_sigmoid, &AttrsOf<HardSigmoid>::info);
const Op ThresholdedRelu::op =
    make_elementwise(Scalar::thresholded_relu, &AttrsOf<ThresholdedRelu>::info);
const Op Shrink::op = make_elementwise(Scalar::shrink, &AttrsOf<Shrink>::info);
const Op Swish::op = make_elementwise(Scalar::swish, &AttrsOf<Swish>::info);
const Op Gelu::op = make_elementwise(Scalar::gelu, &AttrsOf<Gelu>::info);
const Op Mod::op = make_elementwise(Scalar::mod_floor, &AttrsOf<Mod>::info);
const Op BitShift::op = make_elementwise(Scalar::shift_left, &AttrsOf<BitShift>::info);

namespace ops {
void define_elementwise(OpRegistry& registry) {
  for (const auto& row : kRows) registry.add(*row.op);
  registry.add(Identity::op);
  add_elementwise_rules(registry);
}
}  // namespace ops
}  // namespace dais
