#include "nn/body.h"
#include "ops/cast/cast.h"
#include "ops/concat/concat.h"
#include "ops/elementwise/elementwise.h"
#include "ops/generate/generate.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/shape/shape.h"
#include "ops/slice/slice.h"
#include "ops/softmax/softmax.h"
#include "ops/split/split.h"
#include "ops/transpose/transpose.h"

namespace dais::nn {
namespace {

template <typename Struct>
Value apply(Struct attrs, Value x) {
  return NetworkBody::of(x).add(std::move(attrs), {NetworkBody::inner(x)});
}

template <typename Struct>
Value apply(Struct attrs, Value a, Value b) {
  DAIS_CHECK(&NetworkBody::of(a) == &NetworkBody::of(b));
  return NetworkBody::of(a).add(std::move(attrs), {NetworkBody::inner(a), NetworkBody::inner(b)});
}

Value ints(Value like, const std::vector<int64_t>& values) {
  return NetworkBody::of(like).fixed_constant(Tensor::ints(values), "");
}

Value number(Value like, double value) {
  return NetworkBody::of(like).fixed_constant(Tensor::scalar(static_cast<float>(value)), "");
}

/// Sizes of axes [begin, end) as a value.
Value sizes_of(Value x, int64_t begin, int64_t end) {
  return apply(ShapeOf{.start = begin, .end = end}, x);
}

int64_t checked(Value x, int64_t axis) {
  return static_cast<int64_t>(normalize_axis(axis, x.rank()));
}

Value clip(Value x, std::optional<double> low, std::optional<double> high) {
  const auto bound = [&](std::optional<double> value) -> dais::Value* {
    return value ? NetworkBody::inner(number(x, *value)) : nullptr;
  };
  return NetworkBody::of(x).add(Clip{}, {NetworkBody::inner(x), bound(low), bound(high)});
}

}  // namespace

Value relu(Value x) { return apply(Relu{}, x); }
Value relu6(Value x) { return clip(x, 0, 6); }
Value leaky_relu(Value x, double slope) {
  return apply(LeakyRelu{.alpha = static_cast<float>(slope)}, x);
}
Value gelu(Value x) { return apply(Gelu{}, x); }
Value silu(Value x) { return apply(Mul{}, x, apply(Sigmoid{}, x)); }
Value sigmoid(Value x) { return apply(Sigmoid{}, x); }
Value tanh(Value x) { return apply(Tanh{}, x); }
Value exp(Value x) { return apply(Exp{}, x); }
Value hard_swish(Value x) { return apply(HardSwish{}, x); }
Value softmax(Value x, int64_t axis) { return apply(Softmax{.axis = checked(x, axis)}, x); }
Value maximum(Value a, double b) { return clip(a, b, std::nullopt); }

Value flatten(Value x) { return apply(Flatten{.axis = 1}, x); }

Value reshape(Value x, const std::vector<int64_t>& sizes) {
  return apply(Reshape{}, x, ints(x, sizes));
}

Value transpose(Value x, const std::vector<int64_t>& order) {
  return apply(Transpose{.perm = order}, x);
}

Value concat(const std::vector<Value>& parts, int64_t axis) {
  DAIS_CHECK(!parts.empty());
  dais::Values inner;
  for (const Value part : parts) inner.push_back(NetworkBody::inner(part));
  return NetworkBody::of(parts[0]).add(Concat{.axis = checked(parts[0], axis)}, std::move(inner));
}

Value slice(Value x, int64_t axis, int64_t begin, int64_t end) {
  return NetworkBody::of(x).add(
      Slice{},
      {NetworkBody::inner(x), NetworkBody::inner(ints(x, {begin})),
       NetworkBody::inner(ints(x, {end})), NetworkBody::inner(ints(x, {checked(x, axis)}))});
}

Value places_along(Value x, int64_t axis) {
  NetworkBody& body = NetworkBody::of(x);
  const int64_t at = checked(x, axis);
  const auto whole = [&](int64_t value) {
    return NetworkBody::inner(body.fixed_constant(Tensor::scalar(value), ""));
  };
  const Value end = squeeze(sizes_of(x, at, at + 1), 0);
  return body.add(Range{}, {whole(0), NetworkBody::inner(end), whole(1)});
}

std::vector<Value> split(Value x, int64_t axis, const std::vector<int64_t>& sizes) {
  NetworkBody& body = NetworkBody::of(x);
  const Node& node = body.graph.add_node(
      Split{.axis = checked(x, axis)}, {NetworkBody::inner(x), NetworkBody::inner(ints(x, sizes))},
      sizes.size());
  std::vector<Value> out;
  for (dais::Value* value : node.outs) out.push_back(body.wrap(value));
  return out;
}

Value squeeze(Value x, int64_t axis) { return apply(Squeeze{}, x, ints(x, {checked(x, axis)})); }

Value unsqueeze(Value x, int64_t axis) {
  const auto place = static_cast<int64_t>(normalize_axis(axis, x.rank() + 1));
  return apply(Unsqueeze{}, x, ints(x, {place}));
}

Value repeat_batch(Value x, Value like) {
  const std::vector<int64_t> rest(x.rank() - 1, 1);
  return apply(Expand{}, x, concat({sizes_of(like, 0, 1), ints(x, rest)}, 0));
}

Value mean(Value x, const std::vector<int64_t>& axes, bool keep) {
  return apply(ReduceMean{.keepdims = keep}, x, ints(x, axes));
}
Value sum(Value x, const std::vector<int64_t>& axes, bool keep) {
  return apply(ReduceSum{.keepdims = keep}, x, ints(x, axes));
}
Value matmul(Value a, Value b) { return apply(MatMul{}, a, b); }

Value operator+(Value a, Value b) { return apply(Add{}, a, b); }
Value operator-(Value a, Value b) { return apply(Sub{}, a, b); }
Value operator*(Value a, Value b) { return apply(Mul{}, a, b); }
Value operator/(Value a, Value b) { return apply(Div{}, a, b); }
Value operator+(Value a, double b) { return apply(Add{}, a, number(a, b)); }
Value operator*(Value a, double b) { return apply(Mul{}, a, number(a, b)); }

Value equals(Value integers, int64_t value) {
  const Value other = NetworkBody::of(integers).fixed_constant(Tensor::scalar(value), "");
  return apply(Equal{}, integers, other);
}
Value either(Value a, Value b) { return apply(Or{}, a, b); }
Value negate(Value boolean) { return apply(Not{}, boolean); }

Value to_float(Value x) { return apply(Cast{.to = DType::f32}, x); }

}  // namespace dais::nn
