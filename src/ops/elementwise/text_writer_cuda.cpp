// From elementwise nodes to the lines of a kernel.
#include "ops/elementwise/text_writer_cuda.h"

#include <bit>
#include <limits>

#include "ops/elementwise/elementwise_internal.h"
#include "ops/fused/fused.h"

namespace dais {
namespace {

/// The name of a function in scalar.cuh after "s_"; null: it has none for these elements.
const char* function_name(Scalar function, DType dtype) {
  const bool real = real_lane(dtype);
  switch (function) {
    case Scalar::abs: return "abs";
    case Scalar::acos: return "acos";
    case Scalar::acosh: return "acosh";
    case Scalar::asin: return "asin";
    case Scalar::asinh: return "asinh";
    case Scalar::atan: return "atan";
    case Scalar::atanh: return "atanh";
    case Scalar::ceil: return "ceil";
    case Scalar::cos: return "cos";
    case Scalar::cosh: return "cosh";
    case Scalar::erf: return real ? "erf" : nullptr;
    case Scalar::exp: return "exp";
    case Scalar::floor: return "floor";
    case Scalar::log: return "log";
    case Scalar::neg: return "neg";
    case Scalar::reciprocal: return "reciprocal";
    case Scalar::round: return "round";
    case Scalar::sigmoid: return "sigmoid";
    case Scalar::sign: return "sign";
    case Scalar::sin: return "sin";
    case Scalar::sinh: return "sinh";
    case Scalar::sqrt: return "sqrt";
    case Scalar::tan: return "tan";
    case Scalar::tanh: return "tanh";
    case Scalar::logical_not: return "logical_not";
    case Scalar::bitwise_not: return "bitwise_not";
    case Scalar::is_nan: return "is_nan";
    case Scalar::is_inf: return "is_inf";
    case Scalar::relu: return "relu";
    case Scalar::leaky_relu: return "leaky_relu";
    case Scalar::elu: return "elu";
    case Scalar::celu: return "celu";
    case Scalar::selu: return "selu";
    case Scalar::hard_sigmoid: return "hard_sigmoid";
    case Scalar::hard_swish: return "hard_swish";
    case Scalar::softplus: return "softplus";
    case Scalar::softsign: return "softsign";
    case Scalar::thresholded_relu: return "thresholded_relu";
    case Scalar::shrink: return real ? "shrink" : nullptr;
    case Scalar::mish: return "mish";
    case Scalar::swish: return "swish";
    case Scalar::gelu: return "gelu";
    case Scalar::gelu_tanh: return "gelu_tanh";
    case Scalar::add:
    case Scalar::sum: return "add";
    case Scalar::mean: return real ? "add" : nullptr;
    case Scalar::sub: return "sub";
    case Scalar::mul: return "mul";
    case Scalar::div: return "div";
    case Scalar::pow: return "pow";
    case Scalar::mod_floor: return "mod_floor";
    case Scalar::mod_trunc: return "mod_trunc";
    case Scalar::logical_and: return "logical_and";
    case Scalar::logical_or: return "logical_or";
    case Scalar::logical_xor: return "logical_xor";
    case Scalar::equal: return "equal";
    case Scalar::less: return "less";
    case Scalar::less_or_equal: return "less_or_equal";
    case Scalar::greater: return "greater";
    case Scalar::greater_or_equal: return "greater_or_equal";
    case Scalar::shift_left: return "shift_left";
    case Scalar::shift_right: return "shift_right";
    case Scalar::bitwise_and: return "bitwise_and";
    case Scalar::bitwise_or: return "bitwise_or";
    case Scalar::bitwise_xor: return "bitwise_xor";
    case Scalar::prelu: return "prelu";
    case Scalar::min: return "min";
    case Scalar::max: return "max";
    case Scalar::clip: return "clip";
    case Scalar::where: return "where";
  }
  return nullptr;
}

size_t parameter_count(Scalar function) {
  switch (function) {
    case Scalar::leaky_relu:
    case Scalar::elu:
    case Scalar::celu:
    case Scalar::thresholded_relu:
    case Scalar::swish: return 1;
    case Scalar::selu:
    case Scalar::hard_sigmoid:
    case Scalar::shrink:
    case Scalar::is_inf: return 2;
    default: return 0;
  }
}

}  // namespace

ElementText element_text(DType dtype) {
  switch (dtype) {
    case DType::f32: return {"float", "float"};
    case DType::f16: return {"f16", "float"};
    case DType::bf16: return {"bf16", "float"};
    case DType::f64: return {"double", "double"};
    case DType::i8: return {"int8", "int64"};
    case DType::i16: return {"int16", "int64"};
    case DType::i32: return {"int32", "int64"};
    case DType::i64: return {"int64", "int64"};
    case DType::u8: return {"uint8", "uint64"};
    case DType::u16: return {"uint16", "uint64"};
    case DType::u32: return {"uint32", "uint64"};
    case DType::u64: return {"uint64", "uint64"};
    case DType::boolean: return {"bool", "bool"};
    default: return {};
  }
}

bool real_lane(DType dtype) { return is_float(dtype); }

bool TextWriter::fail(std::string reason) {
  reason_ = std::move(reason);
  return false;
}

std::string TextWriter::number(double real) {
  return "numbers.at[" + add_number(std::bit_cast<int64_t>(real)) + "].real";
}

std::string TextWriter::add_number(int64_t bits) {
  out_.numbers.push_back(bits);
  return text_of(out_.numbers.size() - 1);
}

std::string TextWriter::parameter(double value, const char* lane) {
  return "static_cast<" + std::string(lane) + ">(" + number(value) + ")";
}

std::string TextWriter::constant(const Tensor& tensor) {
  const char* lane = element_text(tensor.dtype()).lane;
  const std::string cast = "static_cast<" + std::string(lane) + ">(";
  if (real_lane(tensor.dtype())) return cast + number(tensor.to_double()) + ")";
  const int64_t bits = tensor.dtype() == DType::boolean ? int64_t{tensor.to_double() != 0}
                                                        : tensor.to_ints().front();
  return cast + "numbers.at[" + add_number(bits) + "].whole)";
}

std::string TextWriter::read(const Value* value) {
  if (const auto found = names_.find(value); found != names_.end()) return found->second;
  const DType dtype = value->type.dtype;
  if (!value->type.is_tensor() || !element_text(dtype).memory) {
    fail("element type " + std::string(dtype_name(dtype)));
    return {};
  }
  const auto input = inputs_.find(value);
  if (value->constant() && value->constant()->elements() == 1 && value->constant()->rank() <= 1)
    return names_[value] = constant(*value->constant());
  TextOperand operand{.input = -1, .constant = {}, .dtype = dtype};
  if (input != inputs_.end())
    operand.input = input->second;
  else
    operand.constant = *value->constant();
  out_.operands.push_back(std::move(operand));
  return names_[value] = operand_name(out_.operands.size() - 1, *value);
}

bool TextWriter::add(const Node& node) {
  if (const auto* cast = node.as<Cast>()) return add_cast(node, *cast);
  const auto call = scalar_call(node);
  if (!call) return fail(std::string(node.op->name) + " is not elementwise");
  const DType out = node.outs[0]->type.dtype;
  const size_t data = call->function == Scalar::where ? 1 : 0;
  const DType in = node.in[data]->type.dtype;
  if (!element_text(out).memory || !element_text(in).memory)
    return fail("element type " + std::string(dtype_name(element_text(in).memory ? out : in)));
  const char* name = function_name(call->function, in);
  if (!name) return fail(std::string(node.op->name) + " of integers has no kernel");
  std::string expression = elementwise_row(*node.op)->operands == 0 ? variadic(node, *call, name)
                                                                    : plain(node, *call, name, in);
  if (expression.empty()) return false;
  return define(node.outs[0], wrapped(std::move(expression), out));
}

std::string TextWriter::variadic(const Node& node, const ScalarCall& call,
                                 const std::string& name) {
  std::string out;
  for (const Value* value : node.in) {
    const std::string operand = read(value);
    if (operand.empty()) return {};
    out = out.empty() ? operand : "s_" + name + "(" + out + ", " + operand + ")";
  }
  if (call.function != Scalar::mean) return out;
  const char* lane = element_text(node.outs[0]->type.dtype).lane;
  return out + " / static_cast<" + lane + ">(" + text_of(node.in.size()) + ")";
}

std::string TextWriter::plain(const Node& node, const ScalarCall& call, const std::string& name,
                              DType in) {
  const char* lane = element_text(in).lane;
  std::string out = "s_" + name + "(";
  for (size_t i = 0; i < node.in.size() || (call.function == Scalar::clip && i < 3); ++i) {
    std::string operand;
    if (!node.has(i)) {
      operand = limit(in, i == 1);
    } else if (call.function == Scalar::clip && i > 0 && !bound(*node.in[i])) {
      return {};
    } else {
      operand = read(node.in[i]);
      if (operand.empty()) return {};
      if (call.function == Scalar::pow && i == 1 && node.in[1]->type.dtype != in) {
        if (!real_lane(in)) {
          fail("whole numbers to the power of another type");
          return {};
        }
        operand = "static_cast<" + std::string(lane) + ">(" + operand + ")";
      }
    }
    out += (i ? ", " : "") + operand;
  }
  for (size_t i = 0; i < parameter_count(call.function); ++i)
    out += ", " + parameter(call.parameters[i], lane);
  return out + ")";
}

bool TextWriter::bound(const Value& value) {
  const auto shape = value.type.static_shape();
  if (shape && shape->rank() <= 1) return true;
  return fail("a bound of clip that is no plain number");
}

std::string TextWriter::limit(DType dtype, bool low) {
  if (real_lane(dtype)) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return parameter(low ? -kInfinity : kInfinity, element_text(dtype).lane);
  }
  std::string out;
  visit_dtype<IntegerTypes>(dtype, [&]<typename T>() {
    const T edge = low ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
    out = "static_cast<" + std::string(element_text(dtype).lane) + ">(numbers.at[" +
          add_number(static_cast<int64_t>(edge)) + "].whole)";
  });
  return out;
}

std::string TextWriter::wrapped(std::string expression, DType dtype) {
  const ElementText type = element_text(dtype);
  if (!is_integer(dtype) || dtype == DType::i64 || dtype == DType::u64) return expression;
  return "static_cast<" + std::string(type.lane) + ">(static_cast<" + type.memory + ">(" +
         expression + "))";
}

bool TextWriter::add_cast(const Node& node, const Cast&) {
  const DType from = node.in[0]->type.dtype, to = node.outs[0]->type.dtype;
  if (!element_text(to).memory) return fail("element type " + std::string(dtype_name(to)));
  const std::string operand = read(node.in[0]);
  if (operand.empty()) return false;
  return define(node.outs[0], converted(operand, from, to));
}

std::string TextWriter::converted(const std::string& x, DType from, DType to) {
  const std::string lane = element_text(to).lane;
  if (to == DType::f16 && from != DType::f16) return "as_f16(static_cast<float>(" + x + "))";
  if (to == DType::bf16 && from != DType::bf16) return "as_bf16(static_cast<float>(" + x + "))";
  if (to == DType::boolean) return "(" + x + " != 0)";
  if (!real_lane(from) || real_lane(to)) return wrapped("static_cast<" + lane + ">(" + x + ")", to);
  // Types of one byte saturate; those of 2 and 4 wrap, those of 8 end at their limits.
  if (to == DType::i8) return "real_to_range(" + x + ", -128, 127)";
  if (to == DType::u8) return "static_cast<uint64>(real_to_range(" + x + ", 0, 255))";
  if (to == DType::u64) return "real_to_uint64(" + x + ")";
  return wrapped("static_cast<" + lane + ">(real_to_int64(" + x + "))", to);
}

bool TextWriter::define(const Value* value, const std::string& expression) {
  const std::string name = "v" + text_of(lines_++);
  lines_of(*value) += "      const " + std::string(element_text(value->type.dtype).lane) + " " +
                      name + " = " + expression + ";\n";
  names_[value] = name;
  return true;
}

bool TextWriter::add_result(const Value* value) {
  const std::string name = read(value);
  if (name.empty()) return false;
  results_.push_back(name);
  out_.results.push_back(value->type.dtype);
  return true;
}

std::string& TextWriter::lines_of(const Value&) { return body_; }

void TextWriter::list_inputs() {
  if (node_.as<Fused>()) {
    const Graph& body = *node_.regions[0];
    for (size_t i = 0; i < body.inputs.size(); ++i) inputs_[body.inputs[i]] = static_cast<int>(i);
    return;
  }
  for (size_t i = 0; i < node_.in.size(); ++i)
    if (node_.in[i]) inputs_.try_emplace(node_.in[i], static_cast<int>(i));
}

const char* memory_text(DType dtype) { return element_text(dtype).memory; }
const char* lane_text(DType dtype) { return element_text(dtype).lane; }

}  // namespace dais
