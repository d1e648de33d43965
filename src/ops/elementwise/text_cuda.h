#pragma once

#include <string>
#include <vector>

#include "runtime/kernel.h"

namespace dais {

/// A tensor that a generated kernel reads: an input of the node, or a constant of its body.
struct TextOperand {
  int input = -1;
  Tensor constant;
  DType dtype = DType::f32;
};

/// CUDA C++ for an elementwise or Cast node, or a Fused node whose body has only such: each operand
/// is read once, each result written once. The text depends on functions and types alone, so that
/// nodes that differ in numbers and sizes share it. Kernels `pack_1` and `pack_<width>` take a
/// Space (elementwise.cuh), the numbers, the operands and the results.
struct ElementwiseText {
  std::string text;
  std::vector<TextOperand> operands;
  std::vector<int64_t> numbers;  ///< the bits of doubles or integers
  std::vector<DType> results;
  int width = 1;       ///< elements that one thread moves at once where addresses allow
  std::string reason;  ///< not empty: it cannot be had, and why
};
ElementwiseText elementwise_text(const Node& node);

/// What follows a product (matrices, convolution) inside its kernel, as CUDA C++: a struct
///   struct Epilogue { Number numbers[N]; Operand operands[K]; … LANE apply(LANE acc, int64 batch,
///   int64 row, int64 column) const; }
/// with Operand {const void* data; int64 batch, row, column;} (N and K at least 1), and the defines
/// LANE, A_TYPE, B_TYPE and Y_TYPE. Sums are computed in LANE.
struct EpilogueText {
  std::string text;
  std::vector<TextOperand> operands;
  std::vector<int64_t> numbers;
  /// The product's own third input (C of Gemm, bias of Conv) among the operands; -1: none.
  int addend = -1;
  std::string reason;
};
/// `node` is the product itself, or a Fused node whose body has it and elementwise nodes behind it.
EpilogueText epilogue_text(const Node& node, const Node& product);

/// The element type's name in a kernel's text, and that in which it is computed; null: it has none.
const char* memory_text(DType dtype);
const char* lane_text(DType dtype);

/// Rows for generated kernels: `accepts` and `prepare`.
Verdict accepts_elementwise_text(const KernelQuery& query);
std::unique_ptr<Kernel> prepare_elementwise_text(const KernelQuery& query);

}  // namespace dais
