#pragma once

#include "backends/cpu/byte_block.h"
#include "ir/graph.h"
#include "ops/window.h"

namespace dais {

/// A quantised convolution with all that its kernel needs, found in a QLinearConv or ConvInteger
/// node, or in a Fused node whose body is a QLinearConv, its dequantised sum with another tensor,
/// perhaps a Relu or Clip, and a QuantizeLinear.
struct ByteConv {
  int x = 0;          ///< inputs of the node
  int residual = -1;  ///< ...: the other tensor, u8 or i8, of the result's shape
  DType x_type = DType::u8, y_type = DType::i32;
  const Tensor *w = nullptr, *w_zeros = nullptr, *w_scales = nullptr, *bias = nullptr;
  Window window;
  int64_t group = 1;
  bool channels_last = false;
  int32_t x_zero = 0;
  float x_scale = 1, y_scale = 1;

  // What is stored; see ByteGemm.
  cpu::ByteGemm store;

  /// For output channel m; of weights moved to s8.
  int32_t w_zero(int64_t m) const;
  bool has_w_zeros() const;
  int32_t bias_of(int64_t m) const;
  float scale_of(int64_t m) const;
  void fill_store(cpu::ByteGemm& gemm) const;
};

struct FoundByteConv {
  std::optional<ByteConv> conv;
  std::string reason;
};
FoundByteConv find_byte_conv(const Node& node);

}  // namespace dais
