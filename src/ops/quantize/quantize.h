#pragma once

#include "ir/op.h"

namespace dais {

/// (x, scale, zero_point?): y = saturate(round(x / scale) + zero_point), halves to even. One scale,
/// one per slice of `axis`, or (with block_size) one per block along `axis`. The quotient is
/// rounded to `precision`, which is the scale's type when undefined.
struct QuantizeLinear {
  int64_t axis = 1;
  bool saturate = true;
  int64_t block_size = 0;
  DType output_dtype = DType::undefined;  ///< undefined: that of zero_point, else u8
  DType precision = DType::undefined;
  static constexpr auto fields =
      std::tuple{field("axis", &QuantizeLinear::axis), field("saturate", &QuantizeLinear::saturate),
                 field("block_size", &QuantizeLinear::block_size),
                 field("output_dtype", &QuantizeLinear::output_dtype),
                 field("precision", &QuantizeLinear::precision)};
  static const Op op;
};

/// (x, scale, zero_point?): y = (x - zero_point) * scale, with scales as in QuantizeLinear.
struct DequantizeLinear {
  int64_t axis = 1;
  int64_t block_size = 0;
  DType output_dtype = DType::undefined;  ///< undefined: that of scale
  static constexpr auto fields = std::tuple{field("axis", &DequantizeLinear::axis),
                                            field("block_size", &DequantizeLinear::block_size),
                                            field("output_dtype", &DequantizeLinear::output_dtype)};
  static const Op op;
};

/// x: f32 → (y: u8, scale: f32 scalar, zero_point: u8 scalar) from the range of x, which is widened
/// to hold zero.
struct DynamicQuantizeLinear {
  static constexpr auto fields = std::tuple{};
  static const Op op;
};

}  // namespace dais
