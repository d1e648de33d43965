#include "ops/reduce/reduce_gradient.h"

#include <algorithm>
#include <numeric>

#include "ops/cast/cast.h"
#include "ops/elementwise/elementwise.h"
#include "ops/gradient.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/shape/shape.h"
#include "ops/transpose/transpose.h"

namespace dais {
namespace {

/// The axes of a node, counted from 0; nothing when only running tells.
std::optional<std::vector<int64_t>> axes_of(const Node& n) {
  const auto rank = static_cast<int64_t>(rank_for_gradient(n, n.in[0]));
  std::vector<int64_t> axes;
  if (n.has(1)) {
    const auto known = n.in[1]->known();
    if (!known) return std::nullopt;
    for (const Dim& axis : *known) {
      if (!axis.is_constant()) return std::nullopt;
      axes.push_back(*axis.constant() < 0 ? *axis.constant() + rank : *axis.constant());
    }
  }
  if (axes.empty() && !reduce_attrs(n).noop_with_empty_axes) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  return axes;
}

/// A value of the output's shape in a form that broadcasts to the input.
Term restored(Graph& g, const Node& n, Value* value) {
  if (reduce_attrs(n).keepdims) return {g, value};
  const auto axes = axes_of(n);
  if (!axes) return {g, g.add(Unsqueeze{}, {value, n.in[1]})};
  // A scalar broadcasts as it is.
  if (axes->empty() || axes->size() == n.in[0]->type.shape->size()) return {g, value};
  return {g, g.add(Unsqueeze{}, {value, ints(g, *axes)})};
}

/// One over the number of elements that each result is made of.
Term over_count(Graph& g, const Node& n, const Term& dy) {
  const auto x = n.in[0]->type.static_shape(), y = n.outs[0]->type.static_shape();
  if (x && y && y->elements() > 0)
    return dy / (static_cast<double>(x->elements()) / static_cast<double>(y->elements()));
  const auto axes = axes_of(n);
  if (axes) {
    Dim count = 1;
    for (const int64_t axis : *axes)
      count = count * (*n.in[0]->type.shape)[static_cast<size_t>(axis)];
    if (count.is_constant()) return dy / static_cast<double>(*count.constant());
  }
  Value* all = g.add(Size{}, {n.in[0]});
  Value* count = g.add(Div{}, {all, g.add(Size{}, {n.outs[0]})});
  return dy / Term(g, g.add(Cast{.to = dy.value->type.dtype}, {count}));
}

/// Equal extremes share the gradient.
Term extreme(Graph& g, const Node& n, const Term& y, const Term& dy) {
  const Term chosen(g, g.add(Equal{}, {n.in[0], y.value}));
  const Term ones(g, g.add(Cast{.to = n.in[0]->type.dtype}, {chosen.value}));
  Values in = n.in;
  in[0] = ones;
  const Term count =
      restored(g, n,
               g.add(ReduceSum{.keepdims = reduce_attrs(n).keepdims,
                               .noop_with_empty_axes = reduce_attrs(n).noop_with_empty_axes},
                     in));
  return ones * (dy / count);
}

/// The product of all other elements, also where some are zero: of those before times those behind.
Term others(Graph& g, const Node& n) {
  const auto axes = axes_of(n);
  if (!axes) no_gradient(n, "its axes are not known", "Make them a constant");
  const Term x(g, n.in[0]);
  const auto product = [&](Value* value, int64_t axis, bool reverse) {
    return Term(g, g.add(CumProd{.exclusive = true, .reverse = reverse},
                         {value, g.add_constant(Tensor::scalar(axis))}));
  };
  if (axes->empty()) return Term(g, filled_like(g, 1, x));
  if (axes->size() == 1) return product(x, axes->front(), false) * product(x, axes->front(), true);
  // Reduced axes last, as one.
  const size_t rank = n.in[0]->type.shape->size();
  std::vector<int64_t> perm, list;
  for (size_t i = 0; i < rank; ++i)
    if (std::find(axes->begin(), axes->end(), static_cast<int64_t>(i)) == axes->end())
      perm.push_back(static_cast<int64_t>(i));
  list.assign(perm.size(), 0);
  list.push_back(-1);
  perm.insert(perm.end(), axes->begin(), axes->end());
  Value* turned = g.add(Transpose{.perm = perm}, {x});
  Value* flat = g.add(Reshape{}, {turned, ints(g, list)});
  const Term rest = product(flat, -1, false) * product(flat, -1, true);
  std::vector<int64_t> back(rank);
  for (size_t i = 0; i < rank; ++i) back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return {g, g.add(Transpose{.perm = back}, {reshape_like(g, rest, turned)})};
}

}  // namespace

Values gradient_reduce(Graph& g, const Node& n, std::span<Value* const> given) {
  const Term x(g, n.in[0]), dy = restored(g, n, given[0]);
  const auto y = [&] { return restored(g, n, n.outs[0]); };
  const auto rule = [&]() -> Value* {
    switch (*reduction_of(*n.op)) {
      case Reduction::sum: return expand_like(g, dy, x);
      case Reduction::mean: return expand_like(g, over_count(g, n, dy), x);
      case Reduction::max:
      case Reduction::min: return extreme(g, n, y(), dy);
      case Reduction::prod: return dy * others(g, n);
      case Reduction::l1: return dy * apply<Sign>(x);
      case Reduction::l2: {
        const Term norm = y();
        return x * where(norm > 0, dy / norm, 0);
      }
      case Reduction::log_sum: return expand_like(g, dy * apply<Exp>(-y()), x);
      case Reduction::log_sum_exp: return dy * apply<Exp>(x - y());
      case Reduction::sum_square: return dy * x * 2;
    }
    return nullptr;
  };
  return {rule(), nullptr};
}

Values gradient_sum_to(Graph& g, const Node& n, std::span<Value* const> dy) {
  return {expand_like(g, dy[0], n.in[0]), nullptr};
}

Values gradient_cum_sum(Graph& g, const Node& n, std::span<Value* const> dy) {
  CumSum attrs = *n.as<CumSum>();
  attrs.reverse = !attrs.reverse;
  return {g.add(attrs, {dy[0], n.in[1]}), nullptr};
}

Values gradient_cum_prod(Graph& g, const Node& n, std::span<Value* const> dy) {
  const auto& attrs = *n.as<CumProd>();
  const CumProdBackward back{.exclusive = attrs.exclusive, .reverse = attrs.reverse};
  return {g.add(back, {dy[0], n.in[0], n.in[1]}), nullptr};
}

}  // namespace dais
