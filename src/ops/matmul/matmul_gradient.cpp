// Gradients of matrix products are matrix products with one operand transposed, which Gemm takes as
// an attribute.
#include "ops/matmul/matmul_gradient.h"

#include "ops/gradient.h"
#include "ops/matmul/matmul.h"
#include "ops/reshape/reshape.h"

namespace dais {
namespace {

/// All leading axes as one.
Value* rows_of(Graph& g, Value* x) {
  const size_t rank = x->type.shape->size();
  if (rank == 2) return x;
  return g.add(Flatten{.axis = static_cast<int64_t>(rank) - 1}, {x});
}

}  // namespace

Values gradient_matmul(Graph& g, const Node& n, std::span<Value* const> given) {
  const size_t a_rank = rank_for_gradient(n, n.in[0]), b_rank = rank_for_gradient(n, n.in[1]);
  Value *a = n.in[0], *b = n.in[1], *dy = given[0];
  // Vectors count as a row and a column.
  if (b_rank == 1) {
    b = g.add(Unsqueeze{}, {b, ints(g, {1})});
    dy = g.add(Unsqueeze{}, {dy, ints(g, {-1})});
  }
  if (a_rank == 1) {
    a = g.add(Unsqueeze{}, {a, ints(g, {0})});
    dy = g.add(Unsqueeze{}, {dy, ints(g, {-2})});
  }
  if (b_rank <= 2) {
    Value* rows = rows_of(g, dy);
    Value* da = matrix_product(g, rows, b, false, true);
    Value* db = matrix_product(g, rows_of(g, a), rows, true, false);
    return {reshape_like(g, da, n.in[0]), reshape_like(g, db, n.in[1])};
  }
  Value* da = g.add(MatMul{}, {dy, swap_last_axes(g, b)});
  Value* db = g.add(MatMul{}, {swap_last_axes(g, a), dy});
  da = reduce_to(g, da, a);
  return {reshape_like(g, da, n.in[0]), reduce_to(g, db, b)};
}

Values gradient_gemm(Graph& g, const Node& n, std::span<Value* const> given) {
  const auto& attrs = *n.as<Gemm>();
  Value *a = n.in[0], *b = n.in[1], *dy = given[0];
  const auto alpha = static_cast<double>(attrs.alpha);
  Values out(n.in.size(), nullptr);
  out[0] = attrs.trans_a ? matrix_product(g, b, dy, attrs.trans_b, true, alpha)
                         : matrix_product(g, dy, b, false, !attrs.trans_b, alpha);
  out[1] = attrs.trans_b ? matrix_product(g, dy, a, true, attrs.trans_a, alpha)
                         : matrix_product(g, a, dy, !attrs.trans_a, false, alpha);
  if (n.has(2)) out[2] = reduce_to(g, Term(g, dy) * static_cast<double>(attrs.beta), n.in[2]);
  return out;
}

}  // namespace dais
