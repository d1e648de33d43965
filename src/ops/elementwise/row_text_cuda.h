#pragma once

#include "ops/elementwise/text_cuda.h"

namespace dais {

/// CUDA C++ for a Fused node of elementwise nodes and some that join rows (joined_axes): sums,
/// maxima, softmax, norms along the last axes of one shape. Each operand is read once and each
/// result written once. The kernel `rows` takes a RowSpace (rows.cuh), the numbers, the operands
/// and the results.
struct RowText {
  std::string text;
  std::vector<TextOperand> operands;
  std::vector<int64_t> numbers;
  std::vector<DType> results;
  size_t axes = 1;   ///< of the end, that make a row
  int64_t size = 0;  ///< elements of a row
  unsigned threads = 32;
  std::string reason;  ///< not empty: it cannot be had, and why
};
RowText row_text(const Node& node);

/// Rows of kernels for it: `accepts` and `prepare`.
Verdict accepts_row_text(const KernelQuery& query);
std::unique_ptr<Kernel> prepare_row_text(const KernelQuery& query);

}  // namespace dais
