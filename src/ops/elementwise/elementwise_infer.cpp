#include "ir/call.h"
#include "ir/inference.h"
#include "ops/elementwise/elementwise_internal.h"

namespace dais {
namespace {

bool allowed(ElementKinds kinds, DType dtype) {
  if (is_float(dtype)) return kinds & ElementKinds::real;
  if (is_integer(dtype)) return kinds & ElementKinds::whole;
  if (dtype == DType::boolean) return kinds & ElementKinds::boolean;
  if (dtype == DType::string) return kinds & ElementKinds::text;
  return kinds & ElementKinds::other;
}

/// Element types of the operands; gives that of the result.
DType check_dtypes(Inference& c, const ElementwiseRow& row) {
  const size_t first = row.function == Scalar::where ? 1 : 0;
  const DType dtype = c.dtype(first);
  if (first == 1 && c.dtype(0) != DType::boolean)
    c.fail("the condition is " + std::string(dtype_name(c.dtype(0))) + ", not bool");
  if (!allowed(row.kinds, dtype))
    c.fail("element type " + std::string(dtype_name(dtype)) + " is not one it takes");
  for (size_t i = first + 1; i < c.inputs(); ++i) {
    if (!c.has(i)) continue;
    const bool free = row.function == Scalar::pow;
    if (free ? !allowed(row.kinds, c.dtype(i)) : c.dtype(i) != dtype)
      c.fail("operands are " + std::string(dtype_name(dtype)) + " and " +
                 std::string(dtype_name(c.dtype(i))),
             "Cast one of them");
  }
  return row.logical ? DType::boolean : dtype;
}

void check_count(Inference& c, const ElementwiseRow& row) {
  const auto most = static_cast<size_t>(row.operands);
  size_t least = row.function == Scalar::clip ? 1 : most;
  if (row.operands == 0) least = 1;
  for (size_t i = 0; i < least; ++i) c.type(i);
  if (most != 0 && c.inputs() > most)
    c.fail("it has " + std::to_string(c.inputs()) + " inputs, " + std::to_string(most) +
           " are defined");
  if (most == 0)
    for (size_t i = 0; i < c.inputs(); ++i) c.type(i);
}

std::optional<Dim> quotient(const Dim& a, const Dim& b) {
  if (b.is(0)) return std::nullopt;
  if (a.is_constant() && b.is_constant()) return *a.constant() / *b.constant();
  // Sizes are not negative, so rounding down and truncation agree.
  return floordiv(a, b);
}

std::optional<Dim> compare(const Dim& a, const Dim& b, bool (*holds)(int64_t, int64_t)) {
  const Dim difference = a - b;
  if (!difference.is_constant()) return std::nullopt;
  return int64_t{holds(*difference.constant(), 0)};
}

std::optional<Dim> known_result(const ScalarCall& call, const Dims& x) {
  switch (call.function) {
    case Scalar::neg: return Dim(0) - x[0];
    case Scalar::abs: return x[0].is_constant() ? std::optional(max(x[0], Dim(0) - x[0])) : x[0];
    case Scalar::relu: return max(x[0], 0);
    case Scalar::logical_not:
      return x[0].is_constant() ? std::optional<Dim>(int64_t{x[0].is(0)}) : std::nullopt;
    case Scalar::add: return x[0] + x[1];
    case Scalar::sub: return x[0] - x[1];
    case Scalar::mul: return x[0] * x[1];
    case Scalar::div: return quotient(x[0], x[1]);
    case Scalar::mod_floor: return x[1].is(0) ? std::nullopt : std::optional(mod(x[0], x[1]));
    case Scalar::equal: return compare(x[0], x[1], [](int64_t a, int64_t b) { return a == b; });
    case Scalar::less: return compare(x[0], x[1], [](int64_t a, int64_t b) { return a < b; });
    case Scalar::less_or_equal:
      return compare(x[0], x[1], [](int64_t a, int64_t b) { return a <= b; });
    case Scalar::greater: return compare(x[0], x[1], [](int64_t a, int64_t b) { return a > b; });
    case Scalar::greater_or_equal:
      return compare(x[0], x[1], [](int64_t a, int64_t b) { return a >= b; });
    case Scalar::min:
    case Scalar::max: {
      Dim out = x[0];
      for (size_t i = 1; i < x.size(); ++i)
        out = call.function == Scalar::min ? min(out, x[i]) : max(out, x[i]);
      return out;
    }
    case Scalar::where:
      if (x[0].is_constant()) return x[0].is(0) ? x[2] : x[1];
      return x[1] == x[2] ? std::optional(x[1]) : std::nullopt;
    default: return std::nullopt;
  }
}

/// Shape arithmetic stays symbolic: scalars and lists of sizes whose contents are known.
void infer_known(Inference& c, const ElementwiseRow& row) {
  if (row.function == Scalar::clip) return;
  size_t count = 1;
  std::vector<Dims> operands;
  for (size_t i = 0; i < c.inputs(); ++i) {
    auto known = c.known(i);
    if (!known || c.rank(i) > 1) return;
    if (known->size() != 1) count = known->size();
    operands.push_back(std::move(*known));
  }
  ScalarCall call = *scalar_call(c.node);
  Dims out;
  for (size_t i = 0; i < count; ++i) {
    Dims at;
    for (const Dims& operand : operands) {
      if (operand.size() != 1 && operand.size() != count) return;
      at.push_back(operand[operand.size() == 1 ? 0 : i]);
    }
    auto result = known_result(call, at);
    if (!result) return;
    out.push_back(std::move(*result));
  }
  c.set_known(0, std::move(out));
}

void infer_identity(Inference& c) {
  c.set(0, c.type(0));
  if (auto known = c.known(0)) c.set_known(0, *known);
}

void reference_identity(Call& c) {
  if (c.datum(0).kind != Datum::Kind::tensor) return c.set(0, c.datum(0));
  c.set(0, Datum(c.in(0)));
}

Values gradient_identity(Graph&, const Node&, std::span<Value* const> dy) { return {dy[0]}; }

}  // namespace

void infer_elementwise(Inference& c) {
  const ElementwiseRow& row = *elementwise_row(*c.node.op);
  check_count(c, row);
  const DType dtype = check_dtypes(c, row);
  if (row.function == Scalar::shift_left) {
    const std::string& direction = c.attrs<BitShift>().direction;
    if (direction != "LEFT" && direction != "RIGHT")
      c.fail("direction is '" + direction + "'", "Use LEFT or RIGHT");
  }
  c.set(0, dtype);
  Dims shape = c.shape(0);
  if (row.function != Scalar::clip)
    for (size_t i = 1; i < c.inputs(); ++i) shape = c.broadcast(shape, c.shape(i));
  c.set(0, dtype, std::move(shape));
  infer_known(c, row);
}

const Op Identity::op{
    .name = "identity",
    .attrs = &AttrsOf<Identity>::info,
    .infer = infer_identity,
    .reference = reference_identity,
    .gradient = gradient_identity,
    .onnx = {{"Identity", 1}},
    .view = true,
};

}  // namespace dais
