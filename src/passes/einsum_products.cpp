// Einsum of one or two operands becomes what kernels and recognisers know: sums, transposes, one
// matrix product, and reshapes where several indices play one part in it.

#include <algorithm>
#include <map>
#include <optional>

#include "ops/einsum/einsum.h"
#include "ops/einsum/equation.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/transpose/transpose.h"
#include "passes/passes.h"

namespace dais {
namespace {

using Labels = std::vector<int>;
using Sizes = std::map<int, Dim>;

bool contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

/// One size for each index. Nothing where an index repeats within a term (a diagonal) or stands for
/// sizes that are not known to be equal (one of them may be 1), or where an axis is empty.
std::optional<Sizes> sizes_of(const Node& node, const EinsumEquation& equation) {
  Sizes out;
  for (size_t i = 0; i < equation.terms.size(); ++i) {
    const Labels& term = equation.terms[i];
    for (size_t axis = 0; axis < term.size(); ++axis) {
      if (std::count(term.begin(), term.end(), term[axis]) > 1) return std::nullopt;
      const Dim& size = (*node.in[i]->type.shape)[axis];
      if (size.is(0) || !(out.emplace(term[axis], size).first->second == size)) return std::nullopt;
    }
  }
  return out;
}

/// A value with an index for each axis.
struct Indexed {
  Value* value = nullptr;
  Labels labels;
};

/// The sum over indices that are in none of the lists.
Indexed summed(Graph& graph, Indexed x, const Labels& wanted, const Labels& other = {}) {
  std::vector<int64_t> axes;
  Labels kept;
  for (size_t axis = 0; axis < x.labels.size(); ++axis) {
    if (contains(wanted, x.labels[axis]) || contains(other, x.labels[axis]))
      kept.push_back(x.labels[axis]);
    else
      axes.push_back(static_cast<int64_t>(axis));
  }
  if (axes.empty()) return x;
  const ReduceSum sum{.keepdims = false};
  return {graph.add(sum, {x.value, graph.add_constant(Tensor::ints(axes))}), std::move(kept)};
}

Indexed ordered(Graph& graph, const Indexed& x, const Labels& labels) {
  if (x.labels == labels) return x;
  std::vector<int64_t> perm;
  for (const int label : labels)
    perm.push_back(std::find(x.labels.begin(), x.labels.end(), label) - x.labels.begin());
  return {graph.add(Transpose{perm}, {x.value}), labels};
}

/// Axes of a matrix product: each one stands for some indices.
using Groups = std::vector<Labels>;

/// A Reshape, where one is needed, and its shape input.
struct Regrouping {
  bool needed = false;
  std::vector<int64_t> list = {};

  Value* apply(Graph& graph, Value* x) const {
    return needed ? graph.add(Reshape{}, {x, graph.add_constant(Tensor::ints(list))}) : x;
  }
};

/// From axes that are such groups to others; nothing when more than one size would have to be found
/// out while running.
std::optional<Regrouping> regrouping(const Groups& from, const Groups& to, const Sizes& sizes) {
  if (from == to) return Regrouping{};
  std::vector<int64_t> out;
  for (size_t i = 0; i < to.size(); ++i) {
    if (i < from.size() && from[i] == to[i]) {
      out.push_back(0);
      continue;
    }
    Dim size = 1;
    for (const int label : to[i]) size = size * sizes.at(label);
    out.push_back(size.constant().value_or(-1));
  }
  if (std::count(out.begin(), out.end(), -1) > 1) return std::nullopt;
  return Regrouping{true, std::move(out)};
}

Groups each(const Labels& labels) {
  Groups out;
  for (const int label : labels) out.push_back({label});
  return out;
}

Labels joined(std::initializer_list<const Labels*> lists) {
  Labels out;
  for (const Labels* list : lists) out.insert(out.end(), list->begin(), list->end());
  return out;
}

/// What each index does in a product of two terms.
struct Parts {
  Labels batch, left, right, inner;

  Parts(const Labels& a, const Labels& b, const Labels& result) {
    for (const int label : a) {
      if (contains(b, label))
        (contains(result, label) ? batch : inner).push_back(label);
      else if (contains(result, label))
        left.push_back(label);
    }
    for (const int label : b)
      if (!contains(a, label) && contains(result, label)) right.push_back(label);
  }

  /// Rows need no common axis where nothing is shared: leading axes of A do as well.
  Groups rows() const { return batch.empty() && !left.empty() ? each(left) : Groups{left}; }
};

Groups behind(const Labels& batch, const Groups& rest) {
  Groups out = each(batch);
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

Values product(Graph& graph, const Node& node, const EinsumEquation& equation, const Sizes& sizes) {
  const Labels &a = equation.terms[0], &b = equation.terms[1], &result = equation.result;
  const Parts parts(a, b, result);
  const Labels a_order = joined({&parts.batch, &parts.left, &parts.inner});
  const Labels b_order = joined({&parts.batch, &parts.inner, &parts.right});
  const Labels y_order = joined({&parts.batch, &parts.left, &parts.right});
  Groups a_groups = parts.rows(), y_groups = parts.rows();
  a_groups.push_back(parts.inner);
  y_groups.push_back(parts.right);
  const auto of_a = regrouping(each(a_order), behind(parts.batch, a_groups), sizes);
  const auto of_b =
      regrouping(each(b_order), behind(parts.batch, {parts.inner, parts.right}), sizes);
  const auto of_y = regrouping(behind(parts.batch, y_groups), each(y_order), sizes);
  if (!of_a || !of_b || !of_y) return {};
  const Indexed left = ordered(graph, summed(graph, {node.in[0], a}, b, result), a_order);
  const Indexed right = ordered(graph, summed(graph, {node.in[1], b}, a, result), b_order);
  Value* x = of_a->apply(graph, left.value);
  Value* y = graph.add(MatMul{}, {x, of_b->apply(graph, right.value)});
  return {ordered(graph, {of_y->apply(graph, y), y_order}, result).value};
}

Values expand(Graph& graph, Node& node) {
  const auto* attrs = node.as<Einsum>();
  if (!attrs || node.in.size() > 2) return {};
  std::vector<size_t> ranks;
  for (const Value* value : node.in) {
    if (!value || !value->type.ranked()) return {};
    ranks.push_back(value->type.shape->size());
  }
  EinsumEquation equation;
  if (!parse_einsum(attrs->equation, ranks, equation).empty()) return {};
  const auto sizes = sizes_of(node, equation);
  if (!sizes) return {};
  if (node.in.size() == 2) return product(graph, node, equation, *sizes);
  const Indexed kept = summed(graph, {node.in[0], equation.terms[0]}, equation.result);
  Value* y = ordered(graph, kept, equation.result).value;
  return y == node.in[0] ? Values{} : Values{y};
}

constexpr Rule kRules[] = {{"expand_einsum", expand}};

}  // namespace

bool einsum_products(Graph& graph, const Target&) { return rewrite(graph, kRules); }

}  // namespace dais
