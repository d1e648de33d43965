#pragma once

#include "ops/window.h"

namespace dais {

/// Transposed convolution: the gradient of Conv with respect to its input. Inputs:
/// X [N, C, space...], W [C, M / group, kernel...], B? [M]; output [N, M, space...]. Sizes follow
/// output_shape (spatial) when given, else strides, pads and output_padding. With channels_last X
/// and Y are [N, space..., C]; W stays as it is.
struct ConvTranspose {
  std::string auto_pad = "NOTSET";
  std::vector<int64_t> dilations = {}, kernel_shape = {}, output_padding = {}, output_shape = {},
                       pads = {}, strides = {};
  int64_t group = 1;
  bool channels_last = false;
  static constexpr auto fields = std::tuple{field("auto_pad", &ConvTranspose::auto_pad),
                                            field("dilations", &ConvTranspose::dilations),
                                            field("group", &ConvTranspose::group),
                                            field("kernel_shape", &ConvTranspose::kernel_shape),
                                            field("output_padding", &ConvTranspose::output_padding),
                                            field("output_shape", &ConvTranspose::output_shape),
                                            field("pads", &ConvTranspose::pads),
                                            field("strides", &ConvTranspose::strides),
                                            field("channels_last", &ConvTranspose::channels_last)};
  static const Op op;
};

/// One spatial axis of a transposed convolution of an input of `size` cells.
struct TransposedAxis {
  Dim size;       ///< of the output
  Dim pad_begin;  ///< cells cut off before the first output element
};
TransposedAxis transposed_axis(const ConvTranspose& attrs, const Window& window, size_t axis,
                               const Dim& size);

}  // namespace dais
