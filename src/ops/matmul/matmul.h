#pragma once

#include "ir/op.h"

namespace dais {

/// Matrix product over the last two axes; leading axes broadcast. A 1-d first (second) input counts
/// as a row (column) that is dropped from the result. Integers wrap.
struct MatMul {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

/// alpha * A' * B' + beta * C for matrices, C broadcast to the product. C may be left out.
struct Gemm {
  float alpha = 1;
  float beta = 1;
  bool trans_a = false;
  bool trans_b = false;
  static constexpr auto fields =
      std::tuple{field("alpha", &Gemm::alpha), field("beta", &Gemm::beta),
                 field("transA", &Gemm::trans_a), field("transB", &Gemm::trans_b)};
  static const Op op;
};

/// (A - a_zero) * (B - b_zero) in i32. Inputs: A, B, a_zero?, b_zero?. Zero points are scalars, or
/// one per row of A and per column of B.
struct MatMulInteger {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

/// Inputs: a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero. The integer product, scaled by
/// a_scale * b_scale / y_scale, rounded to nearest even, plus y_zero, saturated.
struct QLinearMatMul {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

/// (A - a_zero) * a_scale times (B - b_zero) * b_scale plus bias, in the type of a_scale.
/// Inputs: A, B, a_scale, b_scale, a_zero?, b_zero?, bias?.
struct MatMulIntegerToFloat {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

/// Quantised Gemm. Inputs: A, a_scale, a_zero, B, b_scale, b_zero, C? (i32, in units of
/// a_scale * b_scale), y_scale?, y_zero?. Without y_scale the result is float.
struct QGemm {
  float alpha = 1;
  bool trans_a = false;
  bool trans_b = false;
  static constexpr auto fields =
      std::tuple{field("alpha", &QGemm::alpha), field("transA", &QGemm::trans_a),
                 field("transB", &QGemm::trans_b)};
  static const Op op;
};

/// A[..., K] times the transpose of a matrix [N, K] held in blocks of 2, 4 or 8 bit numbers along
/// K. Inputs: A, B u8 [N, blocks, block_size * bits / 8], scales [N, blocks], zero_points? (packed
/// like B along blocks, or of A's type; default 2^(bits-1)), g_idx? (block of each k), bias? [N].
struct MatMulNBits {
  int64_t depth = 0;
  int64_t columns = 0;
  int64_t bits = 4;
  int64_t block_size = 32;
  int64_t accuracy_level = 0;  ///< a hint only: how coarsely kernels may round A
  static constexpr auto fields =
      std::tuple{field("K", &MatMulNBits::depth), field("N", &MatMulNBits::columns),
                 field("bits", &MatMulNBits::bits), field("block_size", &MatMulNBits::block_size),
                 field("accuracy_level", &MatMulNBits::accuracy_level)};
  static const Op op;
};

/// The dense [K, N] matrix that the weights of a MatMulNBits node stand for, in f32.
Tensor dequantize_nbits(const MatMulNBits& attrs, const Tensor& packed, const Tensor& scales,
                        const Tensor* zero_points, const Tensor* block_of);

}  // namespace dais
