#include "ops/matmul/contrib.h"

#include <algorithm>
#include <numeric>

#include "ir/onnx_import.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/matmul.h"
#include "ops/quantize/quantize.h"
#include "ops/transpose/transpose.h"

namespace dais {
namespace {

/// `batch`: the first axis holds the rows and those up to the last but one are the batch.
Value* turned(OnnxImport& c, Value* x, bool transpose, bool batch) {
  if (!x || (!transpose && !batch)) return x;
  if (!x->type.shape) c.fail("the rank of an operand is unknown");
  const size_t rank = x->type.shape->size();
  if (rank < 2) return x;
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  if (batch) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (transpose) std::swap(perm[rank - 1], perm[rank - 2]);
  return c.graph.add(Transpose{.perm = perm}, {x});
}

Values import_fused_matmul(OnnxImport& c) {
  const auto flag = [&](std::string_view name) { return c.integer(name, 0) != 0; };
  Value* a = turned(c, c.input(0), flag("transA"), flag("transBatchA"));
  Value* b = turned(c, c.input(1), flag("transB"), flag("transBatchB"));
  const float alpha = c.number("alpha", 1);
  Value* y = c.emit(MatMul{}, {a, b})[0];
  if (alpha == 1) return {y};
  return {c.graph.add(Mul{}, {y, c.scalar_like(static_cast<double>(alpha), y)})};
}

Values import_fused_gemm(OnnxImport& c) {
  Value* y = c.emit(c.attrs<Gemm>(), c.in)[0];
  std::vector<float> parameters;
  for (const std::string_view name : {"activation_alpha", "activation_beta", "activation_gamma"})
    if (c.attribute(name)) parameters.push_back(c.number(name, 0));
  return {add_activation(c.graph, c.text("activation", ""), parameters, y)};
}

/// Inputs: A (float), B, b_scale, b_zero?, bias?.
Values import_dynamic(OnnxImport& c) {
  const Values& a = c.graph.add_node(DynamicQuantizeLinear{}, {c.input(0)}, 3).outs;
  return c.emit(MatMulIntegerToFloat{},
                {a[0], c.input(1), a[1], c.input(2), a[2], c.input(3), c.input(4)});
}

}  // namespace

void define_matmul_contrib(OpRegistry& registry) {
  const auto rule = [&](std::string_view type, Values (*import)(OnnxImport&)) {
    registry.add_rule({.type = type, .domain = "com.microsoft", .import = import});
  };
  rule("FusedMatMul", import_fused_matmul);
  rule("TransposeMatMul", import_fused_matmul);
  rule("FusedGemm", import_fused_gemm);
  rule("DynamicQuantizeMatMul", import_dynamic);
}

}  // namespace dais
