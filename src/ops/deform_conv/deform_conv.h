#pragma once

#include "ir/op.h"

namespace dais {

/// (x NCHW, weights [M, C/group, kh, kw], offsets, bias?, mask?): convolution whose taps are moved
/// by offsets [N, offset_group·kh·kw·2, out…] (vertical, horizontal) and scaled by the mask [N,
/// offset_group·kh·kw, out…]; samples are bilinear, zero outside.
struct DeformConv {
  std::vector<int64_t> dilations = {}, kernel_shape = {}, pads = {}, strides = {};
  int64_t group = 1, offset_group = 1;
  static constexpr auto fields = std::tuple{field("dilations", &DeformConv::dilations),
                                            field("group", &DeformConv::group),
                                            field("kernel_shape", &DeformConv::kernel_shape),
                                            field("offset_group", &DeformConv::offset_group),
                                            field("pads", &DeformConv::pads),
                                            field("strides", &DeformConv::strides)};
  static const Op op;
};

}  // namespace dais
