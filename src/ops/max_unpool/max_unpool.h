#pragma once

#include "ir/op.h"

namespace dais {

/// (values, indices, output_shape?): puts pooled values back where MaxPool found them; the rest is
/// zero. Indices count within the shape that the window implies; a larger output_shape holds that
/// shape in its first corner.
struct MaxUnpool {
  std::vector<int64_t> kernel_shape = {}, pads = {}, strides = {};
  static constexpr auto fields =
      std::tuple{field("kernel_shape", &MaxUnpool::kernel_shape), field("pads", &MaxUnpool::pads),
                 field("strides", &MaxUnpool::strides)};
  static const Op op;
};

}  // namespace dais
