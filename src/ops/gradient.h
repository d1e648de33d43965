#pragma once

#include <initializer_list>

#include "ir/graph.h"

namespace dais {

// What gradient rules are built of. All functions append nodes where the graph inserts (rules run
// with the insertion point at the end), and work on symbolic sizes.

/// A value with arithmetic, so that rules read like formulas: `dy * y * (1 - y)`. Operands
/// broadcast; a number takes the element type of the other operand.
struct Term {
  Graph* graph = nullptr;
  Value* value = nullptr;

  Term(Graph& g, Value* v) : graph(&g), value(v) {}
  operator Value*() const { return value; }
};
Term operator+(const Term& a, const Term& b);
Term operator-(const Term& a, const Term& b);
Term operator*(const Term& a, const Term& b);
Term operator/(const Term& a, const Term& b);
Term operator+(const Term& a, double b);
Term operator-(const Term& a, double b);
Term operator-(double a, const Term& b);
Term operator*(const Term& a, double b);
Term operator/(const Term& a, double b);
Term operator/(double a, const Term& b);
Term operator-(const Term& a);
/// Comparisons with a number, for where().
Term operator>(const Term& a, double b);
Term operator<(const Term& a, double b);
/// yes where the condition holds, else no.
Term where(const Term& condition, const Term& yes, const Term& no);
Term where(const Term& condition, const Term& yes, double no);
/// One operand: Struct without attributes.
template <typename Struct>
Term apply(const Term& x) {
  return {*x.graph, x.graph->add(Struct{}, {x.value})};
}

/// A scalar constant of the element type of `like` (a number type).
Value* number_like(Graph& graph, double number, const Value* like);
Value* ints(Graph& graph, const std::vector<int64_t>& values);
/// Sizes of a tensor as 1-D i64: a constant when all are known, else read directly behind the
/// tensor's producer, so that the tensor itself is not kept for them.
Value* sizes_of(Graph& graph, Value* tensor);
/// A tensor of that shape and element type, filled with one number.
Value* filled_like(Graph& graph, double number, Value* like);
/// x under the shape of `like`, which has as many elements.
Value* reshape_like(Graph& graph, Value* x, Value* like);
/// x repeated to the shape of `like`.
Value* expand_like(Graph& graph, Value* x, Value* like);
/// The sum of x over all axes along which `like` was broadcast to the shape of x: the gradient of
/// that broadcast. Decided while running where sizes do not tell.
Value* reduce_to(Graph& graph, Value* x, Value* like);
/// The sum over the given axes.
Value* sum_over(Graph& graph, Value* x, const std::vector<int64_t>& axes, bool keepdims);
/// The sum of an activation over all axes but that of the channels.
Value* sum_to_channels(Graph& graph, Value* x, bool channels_last);
/// x with its last two axes swapped.
Value* swap_last_axes(Graph& graph, Value* x);
/// a * b for matrices, each transposed first when asked for.
Value* matrix_product(Graph& graph, Value* a, Value* b, bool trans_a, bool trans_b,
                      double alpha = 1);

/// The rank of a value; a rule that needs it fails with `unsupported` naming the node.
size_t rank_for_gradient(const Node& node, const Value* value);
/// A rule's refusal of a case: `unsupported`, naming the node.
[[noreturn]] void no_gradient(const Node& node, const std::string& problem,
                              const std::string& remedy = {});

/// Adds (optional) outputs to the node until it has `count`.
void need_outputs(Graph& graph, const Node& node, size_t count);

/// No input has a gradient: steps and other functions that are constant almost everywhere.
Values zero_gradient(Graph& graph, const Node& node, std::span<Value* const> dy);

}  // namespace dais
