#include "ops/matmul/matmul.h"
#include "ops/reshape/reshape.h"
#include "passes/passes.h"
#include "passes/recognize.h"

namespace dais {
namespace {

/// Reshape(Gemm(Reshape(x), w, b)) that only joins the leading axes of x for the product: a MatMul
/// takes x as it is, and what follows can then join its kernel.
Values gemm_between_reshapes(Graph& graph, Node& node) {
  if (!node.as<Reshape>()) return {};
  Node* gemm = producer_as<Gemm>(node.in[0]);
  if (!gemm || !used_once(graph, gemm->outs[0])) return {};
  const auto& attrs = *gemm->as<Gemm>();
  if (attrs.alpha != 1 || attrs.beta != 1 || attrs.trans_a || attrs.trans_b) return {};
  Node* flat = producer_as<Reshape>(gemm->in[0]);
  if (!flat) return {};
  Value* x = flat->in[0];
  const Type& to = node.outs[0]->type;
  if (!x->type.ranked() || !to.ranked() || x->type.shape->size() < 2) return {};
  Dims wanted = *x->type.shape;
  const auto columns = gemm->in[1]->type.shape;
  const auto depth = flat->outs[0]->type.shape;
  if (!columns || !depth || !(wanted.back() == depth->back())) return {};
  wanted.back() = columns->back();
  if (!(wanted == *to.shape)) return {};
  if (gemm->has(2)) {
    const Type& bias = gemm->in[2]->type;
    if (!bias.ranked() || bias.shape->size() != 1) return {};
  }
  Value* y = graph.add(MatMul{}, {x, gemm->in[1]});
  return {gemm->has(2) ? graph.add(Add{}, {y, gemm->in[2]}) : y};
}

constexpr Rule kRules[] = {{"gemm_between_reshapes", gemm_between_reshapes}};

}  // namespace

/// Products that exporters wrote in a roundabout way.
bool recognize_products(Graph& graph, const Target&) { return rewrite(graph, kRules); }

}  // namespace dais
