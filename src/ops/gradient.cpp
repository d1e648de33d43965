#include "ops/gradient.h"

#include <numeric>

#include "base/error.h"
#include "ops/elementwise/elements.h"
#include "ops/elementwise/elementwise.h"
#include "ops/generate/generate.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/shape/shape.h"
#include "ops/transpose/transpose.h"

namespace dais {
namespace {

template <typename Struct>
Term two(const Term& a, const Term& b) {
  return {*a.graph, a.graph->add(Struct{}, {a.value, b.value})};
}
Term number(const Term& like, double value) {
  return {*like.graph, number_like(*like.graph, value, like.value)};
}

Tensor one_number(DType dtype, double number) {
  Tensor out(dtype, Shape{});
  store_elements(out, 0, 1, 1, &number);
  return out;
}

}  // namespace

Term operator+(const Term& a, const Term& b) { return two<Add>(a, b); }
Term operator-(const Term& a, const Term& b) { return two<Sub>(a, b); }
Term operator*(const Term& a, const Term& b) { return two<Mul>(a, b); }
Term operator/(const Term& a, const Term& b) { return two<Div>(a, b); }
Term operator+(const Term& a, double b) { return a + number(a, b); }
Term operator-(const Term& a, double b) { return a - number(a, b); }
Term operator-(double a, const Term& b) { return number(b, a) - b; }
Term operator*(const Term& a, double b) { return b == 1 ? a : a * number(a, b); }
Term operator/(const Term& a, double b) { return b == 1 ? a : a / number(a, b); }
Term operator/(double a, const Term& b) { return number(b, a) / b; }
Term operator-(const Term& a) { return apply<Neg>(a); }
Term operator>(const Term& a, double b) { return two<Greater>(a, number(a, b)); }
Term operator<(const Term& a, double b) { return two<Less>(a, number(a, b)); }

Term where(const Term& condition, const Term& yes, const Term& no) {
  Graph& graph = *condition.graph;
  return {graph, graph.add(Where{}, {condition.value, yes.value, no.value})};
}
Term where(const Term& condition, const Term& yes, double no) {
  return where(condition, yes, number(yes, no));
}

Value* number_like(Graph& graph, double number, const Value* like) {
  return graph.add_constant(one_number(like->type.dtype, number));
}

Value* ints(Graph& graph, const std::vector<int64_t>& values) {
  return graph.add_constant(Tensor::ints(values));
}

Value* sizes_of(Graph& graph, Value* tensor) {
  if (const auto shape = tensor->type.static_shape()) return ints(graph, shape->vector());
  Node* behind = tensor->producer()      ? graph.next(*tensor->producer())
                 : graph.nodes().empty() ? nullptr
                                         : graph.nodes().front().get();
  Graph::InsertBefore place(graph, behind);
  return graph.add(ShapeOf{}, {tensor});
}

Value* filled_like(Graph& graph, double number, Value* like) {
  const Tensor scalar = one_number(like->type.dtype, number);
  return graph.add(ConstantOfShape{.value = scalar.reshaped(Shape{1})}, {sizes_of(graph, like)});
}

Value* reshape_like(Graph& graph, Value* x, Value* like) {
  if (x->type.ranked() && like->type.ranked() && *x->type.shape == *like->type.shape) return x;
  return graph.add(Reshape{.allowzero = true}, {x, sizes_of(graph, like)});
}

Value* expand_like(Graph& graph, Value* x, Value* like) {
  if (x->type.ranked() && like->type.ranked() && *x->type.shape == *like->type.shape) return x;
  return graph.add(Expand{}, {x, sizes_of(graph, like)});
}

Value* sum_over(Graph& graph, Value* x, const std::vector<int64_t>& axes, bool keepdims) {
  if (axes.empty()) return x;
  return graph.add(ReduceSum{.keepdims = keepdims}, {x, ints(graph, axes)});
}

Value* sum_to_channels(Graph& graph, Value* x, bool channels_last) {
  DAIS_CHECK(x->type.ranked() && x->type.shape->size() >= 2);
  const size_t rank = x->type.shape->size(), channel = channels_last ? rank - 1 : 1;
  std::vector<int64_t> axes;
  for (size_t axis = 0; axis < rank; ++axis)
    if (axis != channel) axes.push_back(static_cast<int64_t>(axis));
  return sum_over(graph, x, axes, false);
}

Value* reduce_to(Graph& graph, Value* x, Value* like) {
  if (!x->type.ranked() || !like->type.ranked())
    return graph.add(SumTo{}, {x, sizes_of(graph, like)});
  const Dims &from = *x->type.shape, &to = *like->type.shape;
  DAIS_CHECK(from.size() >= to.size());
  const size_t lead = from.size() - to.size();
  std::vector<int64_t> axes(lead);
  std::iota(axes.begin(), axes.end(), 0);
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] == from[lead + i]) continue;
    // Another size that is no 1 can only be the same one under another name.
    if (to[i].is_constant() && !to[i].is(1)) continue;
    if (!to[i].is_constant()) return graph.add(SumTo{}, {x, sizes_of(graph, like)});
    axes.push_back(static_cast<int64_t>(lead + i));
  }
  if (axes.empty()) return x;
  if (axes.size() == lead) return sum_over(graph, x, axes, false);
  Value* sum = sum_over(graph, x, axes, true);
  return lead == 0 ? sum : reshape_like(graph, sum, like);
}

Value* swap_last_axes(Graph& graph, Value* x) {
  DAIS_CHECK(x->type.ranked() && x->type.shape->size() >= 2);
  std::vector<int64_t> perm(x->type.shape->size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return graph.add(Transpose{.perm = perm}, {x});
}

Value* matrix_product(Graph& graph, Value* a, Value* b, bool trans_a, bool trans_b, double alpha) {
  return graph.add(Gemm{.alpha = static_cast<float>(alpha), .trans_a = trans_a, .trans_b = trans_b},
                   {a, b});
}

size_t rank_for_gradient(const Node& node, const Value* value) {
  if (!value->type.ranked())
    no_gradient(node, "the rank of '" + value->name + "' is not known", "State the input's shape");
  return value->type.shape->size();
}

void no_gradient(const Node& node, const std::string& problem, const std::string& remedy) {
  throw Error(Code::unsupported, "no gradient: " + problem, node.where(), remedy);
}

void need_outputs(Graph& graph, const Node& node, size_t count) {
  while (node.outs.size() < count) graph.add_output(*node.outs[0]->producer());
}

Values zero_gradient(Graph&, const Node& node, std::span<Value* const>) {
  return Values(node.in.size(), nullptr);
}

}  // namespace dais
