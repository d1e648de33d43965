#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/gemm_block.h"
#include "ir/graph.h"

namespace dais {

/// One step behind a product. Operands are an input of the node, or a constant.
struct ProductStep {
  using Kind = cpu::GemmStep::Kind;
  Kind kind = Kind::scale;
  float value = 1, high = 0;
  int operand = -1;      ///< input that holds a tensor, a column or the number of scale and shift
  Tensor constant = {};  ///< else: f32 values per column, or a tensor of the result's size
};

/// A matrix product and the elementwise steps behind it, found in a MatMul or Gemm node or in the
/// body of a Fused node that starts with one.
struct ProductBody {
  const Node* product = nullptr;
  int a = -1, b = -1;  ///< inputs of the node; -1: the constant
  const Tensor* a_constant = nullptr;
  const Tensor* b_constant = nullptr;
  bool trans_a = false, trans_b = false;
  DType dtype = DType::f32;
  std::vector<ProductStep> steps = {};

  bool is_gemm() const;
};

/// The body, or the reason why the node is no product that a kernel could run.
struct FoundProduct {
  std::optional<ProductBody> body;
  std::string reason;
};
FoundProduct find_product(const Node& node);

}  // namespace dais
