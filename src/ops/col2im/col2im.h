#pragma once

#include "ir/op.h"

namespace dais {

/// (columns [N, C·block, L], image_shape, block_shape): puts the blocks of a sliding window back
/// into an image [N, C, image…]; overlapping elements are added.
struct Col2Im {
  std::vector<int64_t> dilations = {}, pads = {}, strides = {};
  static constexpr auto fields =
      std::tuple{field("dilations", &Col2Im::dilations), field("pads", &Col2Im::pads),
                 field("strides", &Col2Im::strides)};
  static const Op op;
};

/// (dy, image_shape, block_shape): the gradient of the columns: the blocks of dy side by side.
struct Col2ImBackward {
  std::vector<int64_t> dilations = {}, pads = {}, strides = {};
  static constexpr auto fields =
      std::tuple{field("dilations", &Col2ImBackward::dilations),
                 field("pads", &Col2ImBackward::pads), field("strides", &Col2ImBackward::strides)};
  static const Op op;
};

}  // namespace dais
