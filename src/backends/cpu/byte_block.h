#pragma once

#include <cstdint>

/// Work of the raw loops of byte_gemm.h. Plain structs, as _simd.cpp files include this.
namespace dais::cpu {

/// Columns of one panel of packed B.
constexpr int64_t kBytePanel = 16;
/// Channels of one block of packed depthwise weights.
constexpr int64_t kDepthwiseBlock = 64;
/// Depth after which sums go to memory when many rows share B.
constexpr int64_t kByteDepthBlock = 2048;
/// Bytes of A that stay in the second-level cache while all of B passes.
constexpr int64_t kByteHeld = int64_t{1} << 20;

/// C = steps(A * B). The sum of row m and column n is
///   sum = A[m] . B[n] + offset[n] - row_sums[m] * b_zeros[n]
/// and what is stored: i32: sum; f32: sum * scales[n] + bias[n];
/// u8, i8: q = clamp(round(sum * scales[n]), low, high) to even and, with a residual r,
/// q = clamp(round(q * own_scale + (r - residual_zero) * residual_scale), sum_low, sum_high);
/// then q + zero.
struct ByteGemm {
  enum class Out : uint8_t { i32, f32, u8, i8 };

  int64_t rows = 0, columns = 0, depth = 0;
  int64_t step = 64, padded = 64;  ///< see byte_depth()
  const uint8_t* a = nullptr;
  int64_t a_row = 0;
  bool a_signed = false;
  bool a_padded = false;          ///< rows of A can be read up to the padded depth
  const int8_t* b = nullptr;      ///< packed
  const int32_t* sums = nullptr;  ///< of the columns of B
  const int32_t* offset = nullptr;
  const int32_t *row_sums = nullptr, *b_zeros = nullptr;  ///< both or neither
  int32_t* partial = nullptr;  ///< rows x whole panels, for products of byte_partial_bytes() > 0

  Out out = Out::i32;
  void* c = nullptr;
  int64_t c_row = 0;  ///< elements
  const float *scales = nullptr, *bias = nullptr;
  float low = 0, high = 0;
  int32_t zero = 0;
  const uint8_t* residual = nullptr;  ///< rows of c_row elements
  bool residual_signed = false;
  float own_scale = 1, residual_scale = 1, sum_low = 0, sum_high = 0;
  int32_t residual_zero = 0;
};

/// Depthwise convolution, channels last: at each position `taps` rows of `channels` values are
/// summed with weights from depthwise_pack(); then y = clamp(round((sum + offset) * scale), low,
/// high) + zero. Per-channel arrays are in the order of depthwise_place() and cover whole blocks.
struct ByteDepthwise {
  int64_t channels = 0, taps = 0;
  bool x_signed = false;
  const int8_t* weights = nullptr;                   ///< packed
  const int32_t *offset = nullptr, *sums = nullptr;  ///< sums: of the weights of each channel
  ByteGemm::Out out = ByteGemm::Out::u8;             ///< u8 or i8
  const float* scales = nullptr;
  float low = 0, high = 0;
  int32_t zero = 0;
};

}  // namespace dais::cpu
