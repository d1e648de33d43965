// From nodes to tile programs.
#include "ops/elementwise/program_cpu.h"

#include <limits>
#include <unordered_map>

#include "ops/cast/cast.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/elementwise_internal.h"
#include "ops/fused/fused.h"

namespace dais {
namespace {

using TileTypes = DTypes<DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64, DType::i32,
                         DType::i16, DType::i8, DType::u32, DType::u16, DType::u8, DType::boolean>;

Lane lane_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::f16:
    case DType::bf16: return Lane::f32;
    case DType::f64: return Lane::f64;
    case DType::boolean: return Lane::u8;
    default: return Lane::i64;
  }
}

std::optional<Narrow> narrow_of(DType dtype) {
  switch (dtype) {
    case DType::f16: return Narrow::f16;
    case DType::bf16: return Narrow::bf16;
    case DType::i32: return Narrow::i32;
    case DType::i16: return Narrow::i16;
    case DType::i8: return Narrow::i8;
    case DType::u32: return Narrow::u32;
    case DType::u16: return Narrow::u16;
    case DType::u8: return Narrow::u8;
    default: return std::nullopt;
  }
}

size_t lane_size(Lane lane) { return lane == Lane::f32 ? 4 : lane == Lane::u8 ? 1 : 8; }

/// Results of these stay within the type of their integer operands.
bool stays_in_type(Scalar function) {
  switch (function) {
    case Scalar::min:
    case Scalar::max:
    case Scalar::clip:
    case Scalar::where:
    case Scalar::relu:
    case Scalar::sign:
    case Scalar::bitwise_and:
    case Scalar::bitwise_or:
    case Scalar::bitwise_xor: return true;
    default: return false;
  }
}

bool is_logical(const Node& node) { return node.outs[0]->type.dtype == DType::boolean; }

std::array<double, 2> integer_limits(DType dtype) {
  std::array<double, 2> limits{};
  visit_dtype<IntegerTypes>(dtype, [&]<typename T>() {
    limits = {static_cast<double>(std::numeric_limits<T>::min()),
              static_cast<double>(std::numeric_limits<T>::max())};
  });
  return limits;
}

class Compiler {
 public:
  explicit Compiler(const Node& node) : node_(node) {}

  CompiledProgram compile() {
    if (node_.as<Fused>()) {
      const Graph& body = *node_.regions[0];
      for (size_t i = 0; i < body.inputs.size(); ++i) inputs_[body.inputs[i]] = static_cast<int>(i);
      for (const auto& node : body.nodes())
        if (!add(*node)) return refuse();
      for (const Value* value : body.outputs)
        if (!add_result(value)) return refuse();
    } else {
      for (size_t i = 0; i < node_.in.size(); ++i)
        if (node_.in[i]) inputs_.try_emplace(node_.in[i], static_cast<int>(i));
      if (!add(node_) || !add_result(node_.outs[0])) return refuse();
    }
    if (program_.operands.size() > kMaxTileOperands || program_.steps.size() > kMaxTileSteps ||
        program_.results.size() > kMaxTileResults)
      return {{}, "too many values for one loop"};
    finish_numbers();
    return {std::move(program_), {}};
  }

 private:
  CompiledProgram refuse() const { return {{}, reason_}; }
  bool fail(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }

  /// Steps' results are numbered from kFirstResult on until all operands are known.
  static constexpr int kFirstResult = 1000;

  int push(TileStep step) {
    program_.steps.push_back(step);
    return kFirstResult + static_cast<int>(program_.steps.size()) - 1;
  }

  int add_operand(TileOperand operand) {
    program_.operands.push_back(std::move(operand));
    return static_cast<int>(program_.operands.size()) - 1;
  }

  /// The value in its lane; an operand of another memory type is loaded first. -1: not possible.
  int read(const Value* value) {
    if (const auto found = numbers_.find(value); found != numbers_.end()) return found->second;
    const DType dtype = value->type.dtype;
    if (!value->type.is_tensor() || !TileTypes::contains(dtype)) {
      fail("element type " + std::string(dtype_name(dtype)));
      return -1;
    }
    TileOperand operand{.input = -1, .constant = {}, .dtype = dtype};
    const auto input = inputs_.find(value);
    if (value->constant() && (input == inputs_.end() || node_.as<Fused>()))
      operand.constant = *value->constant();
    else
      operand.input = input->second;
    int number = add_operand(std::move(operand));
    if (const auto narrow = narrow_of(dtype))
      number = push({.kind = TileStep::Kind::load,
                     .lane = lane_of(dtype),
                     .out = lane_of(dtype),
                     .narrow = *narrow,
                     .in = {number, -1, -1}});
    return numbers_[value] = number;
  }

  /// The value as another lane.
  int read_as(const Value* value, Lane lane) {
    const int number = read(value);
    const Lane own = lane_of(value->type.dtype);
    if (number < 0 || own == lane) return number;
    return push({.kind = TileStep::Kind::convert,
                 .lane = own,
                 .out = lane,
                 .in = {number, -1, -1},
                 .parameters = integer_limits(DType::i64)});
  }

  bool add(const Node& node) {
    if (const auto* cast = node.as<Cast>()) return add_cast(node, *cast);
    const auto call = scalar_call(node);
    if (!call) return fail(std::string(node.op->name) + " is not elementwise");
    const DType out = node.outs[0]->type.dtype;
    if (!TileTypes::contains(out)) return fail("element type " + std::string(dtype_name(out)));
    const size_t data = call->function == Scalar::where ? 1 : 0;
    const Lane lane = lane_of(node.in[data]->type.dtype);
    const int number = elementwise_row(*node.op)->operands == 0 ? add_variadic(node, *call, lane)
                                                                : add_function(node, *call, lane);
    if (number < 0) return false;
    numbers_[node.outs[0]] =
        stays_in_type(call->function) ? number : wrapped(number, out, is_logical(node));
    return true;
  }

  int wrapped(int number, DType dtype, bool logical) {
    const auto narrow = narrow_of(dtype);
    if (logical || !narrow || lane_of(dtype) != Lane::i64) return number;
    return push({.kind = TileStep::Kind::wrap,
                 .lane = Lane::i64,
                 .out = Lane::i64,
                 .narrow = *narrow,
                 .in = {number, -1, -1}});
  }

  /// A step for the function; converts what a reference loop gives where a truth is wanted.
  int apply(TileStep step, bool logical) {
    step.out = logical ? Lane::u8 : step.lane;
    const TileLoops& loops = tile_loops(Isa::plain);
    if (loops.function(step.scalar, step.lane, 0)) return push(step);
    if (step.lane == Lane::f32) return apply_in_double(step, logical);
    const ScalarLoops reference = scalar_loops(step.scalar);
    if (step.lane == Lane::f64) step.real = reference.real;
    if (step.lane == Lane::i64) step.whole = reference.integer;
    if (!step.real && !step.whole) {
      fail("no loop of this function for the element type");
      return -1;
    }
    step.out = step.lane;
    const int number = push(step);
    return logical ? converted(number, step.lane, Lane::u8) : number;
  }

  int converted(int number, Lane from, Lane to) {
    return push({.kind = TileStep::Kind::convert, .lane = from, .out = to, .in = {number, -1, -1}});
  }

  int apply_in_double(TileStep step, bool logical) {
    for (int& in : step.in)
      if (in >= 0) in = converted(in, Lane::f32, Lane::f64);
    step.lane = Lane::f64;
    const int number = apply(step, logical);
    return number < 0 || logical ? number : converted(number, Lane::f64, Lane::f32);
  }

  /// Powers that are products or roots, by a constant exponent; 0: no such.
  int add_power(const Node& node, Lane lane) {
    const Tensor* exponent = node.in[1]->constant();
    if (!exponent || exponent->elements() != 1 || (lane != Lane::f32 && lane != Lane::f64))
      return 0;
    const double power = exponent->to_double();
    if (power != 2 && power != 3 && power != 0.5 && power != -1) return 0;
    const int x = read_as(node.in[0], lane);
    if (x < 0) return x;
    const auto one = [&](Scalar function) {
      return apply({.scalar = function, .lane = lane, .in = {x, -1, -1}}, false);
    };
    if (power == 0.5) return one(Scalar::sqrt);
    if (power == -1) return one(Scalar::reciprocal);
    const int square = apply({.scalar = Scalar::mul, .lane = lane, .in = {x, x, -1}}, false);
    if (power == 2) return square;
    return apply({.scalar = Scalar::mul, .lane = lane, .in = {square, x, -1}}, false);
  }

  int add_function(const Node& node, const ScalarCall& call, Lane lane) {
    if (call.function == Scalar::pow)
      if (const int number = add_power(node, lane)) return number;
    TileStep step{.scalar = call.function, .lane = lane, .parameters = call.parameters};
    const size_t count = static_cast<size_t>(elementwise_row(*node.op)->operands);
    for (size_t i = 0; i < count; ++i) {
      const bool condition = call.function == Scalar::where && i == 0;
      step.in[i] =
          node.has(i) ? read_as(node.in[i], condition ? Lane::u8 : lane) : unbounded(i == 2, lane);
      if (step.in[i] < 0) return -1;
    }
    return apply(step, is_logical(node));
  }

  /// The bound that Clip lacks.
  int unbounded(bool upper, Lane lane) {
    if (lane == Lane::u8) return -1;
    const double infinity = std::numeric_limits<double>::infinity();
    const double limit = upper ? infinity : -infinity;
    TileOperand operand;
    if (lane == Lane::f32) {
      operand = {-1, Tensor::scalar<float>(static_cast<float>(limit)), DType::f32};
    } else if (lane == Lane::f64) {
      operand = {-1, Tensor::scalar<double>(limit), DType::f64};
    } else {
      using Limits = std::numeric_limits<int64_t>;
      operand = {-1, Tensor::scalar<int64_t>(upper ? Limits::max() : Limits::min()), DType::i64};
    }
    return add_operand(std::move(operand));
  }

  int add_variadic(const Node& node, const ScalarCall& call, Lane lane) {
    int total = read_as(node.in[0], lane);
    for (size_t i = 1; i < node.in.size() && total >= 0; ++i) {
      const int next = read_as(node.in[i], lane);
      if (next < 0) return -1;
      total = apply({.scalar = call.function, .lane = lane, .in = {total, next, -1}}, false);
    }
    if (total < 0 || call.function != Scalar::mean || node.in.size() == 1) return total;
    const auto count = static_cast<double>(node.in.size());
    TileOperand divisor{-1, Tensor::scalar<double>(count), DType::f64};
    if (lane == Lane::f32)
      divisor = {-1, Tensor::scalar<float>(static_cast<float>(count)), DType::f32};
    const int by = add_operand(std::move(divisor));
    return apply({.scalar = Scalar::div, .lane = lane, .in = {total, by, -1}}, false);
  }

  bool add_cast(const Node& node, const Cast& cast) {
    if (!TileTypes::contains(cast.to))
      return fail("to element type " + std::string(dtype_name(cast.to)));
    const DType from = node.in[0]->type.dtype;
    int number = read(node.in[0]);
    if (number < 0) return false;
    const Lane own = lane_of(from), wanted = lane_of(cast.to);
    const bool saturates = wanted == Lane::i64 && (own == Lane::f32 || own == Lane::f64);
    if (own != wanted)
      number = push({.kind = TileStep::Kind::convert,
                     .lane = own,
                     .out = wanted,
                     .in = {number, -1, -1},
                     .parameters = saturates ? integer_limits(cast.to) : std::array<double, 2>{}});
    if (own == wanted && from != cast.to) number = wrapped(number, cast.to, false);
    numbers_[node.outs[0]] = number;
    return true;
  }

  bool add_result(const Value* value) {
    int number = read(value);
    if (number < 0) return false;
    const DType dtype = value->type.dtype;
    if (const auto narrow = narrow_of(dtype))
      number = push({.kind = TileStep::Kind::store,
                     .lane = lane_of(dtype),
                     .out = lane_of(dtype),
                     .narrow = *narrow,
                     .in = {number, -1, -1}});
    else if (number < kFirstResult)
      return fail("an output is an input");
    program_.results.push_back(number);
    program_.result_types.push_back(dtype);
    return true;
  }

  void finish_numbers() {
    const int shift = static_cast<int>(program_.operands.size()) - kFirstResult;
    const auto move = [&](int& number) { number += number >= kFirstResult ? shift : 0; };
    for (TileStep& step : program_.steps)
      for (int& number : step.in) move(number);
    for (int& number : program_.results) move(number);
  }

  const Node& node_;
  TileProgram program_;
  std::unordered_map<const Value*, int> inputs_, numbers_;
  std::string reason_;
};

}  // namespace

size_t TileProgram::element_size(int value) const {
  const auto at = static_cast<size_t>(value);
  if (at < operands.size()) return dtype_size(operands[at].dtype);
  const TileStep& step = steps[at - operands.size()];
  if (step.kind != TileStep::Kind::store) return lane_size(step.out);
  return step.narrow == Narrow::i8 || step.narrow == Narrow::u8     ? 1
         : step.narrow == Narrow::i32 || step.narrow == Narrow::u32 ? 4
                                                                    : 2;
}

bool is_tile_node(const Node& node) {
  if (!node.as<Cast>() && !scalar_call(node)) return false;
  if (node.outs.size() != 1 || !node.outs[0]->type.is_tensor()) return false;
  return compile_tiles(node).program.has_value();
}

CompiledProgram compile_tiles(const Node& node) { return Compiler(node).compile(); }

}  // namespace dais
