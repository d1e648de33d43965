#pragma once

#include "ir/op.h"

namespace dais {

/// Convolution. Inputs: X [N, C, space...], W [M, C / group, kernel...], B? [M]; output
/// [N, M, positions...]. With channels_last X and Y are [N, space..., C]; W stays as it is.
struct Conv {
  std::string auto_pad = "NOTSET";
  std::vector<int64_t> dilations = {}, kernel_shape = {}, pads = {}, strides = {};
  int64_t group = 1;
  bool channels_last = false;
  static constexpr auto fields = std::tuple{field("auto_pad", &Conv::auto_pad),
                                            field("dilations", &Conv::dilations),
                                            field("group", &Conv::group),
                                            field("kernel_shape", &Conv::kernel_shape),
                                            field("pads", &Conv::pads),
                                            field("strides", &Conv::strides),
                                            field("channels_last", &Conv::channels_last)};
  static const Op op;
};

enum class ConvSide : uint8_t { data, weights };
/// Gradients of Conv, by its attributes (kernel_shape always given).
/// ConvBackwardData: (dy, W, sizes of X: i64 list) → dX.
/// ConvBackwardWeights: (X, dy) → dW, [M, C / group, kernel...].
template <ConvSide side>
struct ConvBackward {
  std::string auto_pad = "NOTSET";
  std::vector<int64_t> dilations = {}, kernel_shape = {}, pads = {}, strides = {};
  int64_t group = 1;
  bool channels_last = false;
  static constexpr auto fields = std::tuple{field("auto_pad", &ConvBackward::auto_pad),
                                            field("dilations", &ConvBackward::dilations),
                                            field("group", &ConvBackward::group),
                                            field("kernel_shape", &ConvBackward::kernel_shape),
                                            field("pads", &ConvBackward::pads),
                                            field("strides", &ConvBackward::strides),
                                            field("channels_last", &ConvBackward::channels_last)};
  static const Op op;
};
using ConvBackwardData = ConvBackward<ConvSide::data>;
using ConvBackwardWeights = ConvBackward<ConvSide::weights>;
template <>
const Op ConvBackwardData::op;
template <>
const Op ConvBackwardWeights::op;

/// The same attributes for another of Conv, ConvBackwardData and ConvBackwardWeights.
template <typename To, typename From>
To same_window(const From& from) {
  return {.auto_pad = from.auto_pad,
          .dilations = from.dilations,
          .kernel_shape = from.kernel_shape,
          .pads = from.pads,
          .strides = from.strides,
          .group = from.group,
          .channels_last = from.channels_last};
}

/// Convolution of (X - x_zero) with (W - w_zero) in i32: padding counts as x_zero.
/// Inputs: X, W, x_zero?, w_zero? (one, or one per output channel).
struct ConvInteger {
  std::string auto_pad = "NOTSET";
  std::vector<int64_t> dilations = {}, kernel_shape = {}, pads = {}, strides = {};
  int64_t group = 1;
  bool channels_last = false;
  static constexpr auto fields = std::tuple{field("auto_pad", &ConvInteger::auto_pad),
                                            field("dilations", &ConvInteger::dilations),
                                            field("group", &ConvInteger::group),
                                            field("kernel_shape", &ConvInteger::kernel_shape),
                                            field("pads", &ConvInteger::pads),
                                            field("strides", &ConvInteger::strides),
                                            field("channels_last", &ConvInteger::channels_last)};
  static const Op op;
};

/// Inputs: x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, B? (i32, in units of
/// x_scale * w_scale). w_scale and w_zero may hold one value per output channel. Padding counts as
/// x_zero; the scaled sum is rounded to nearest even and saturated.
struct QLinearConv {
  std::string auto_pad = "NOTSET";
  std::vector<int64_t> dilations = {}, kernel_shape = {}, pads = {}, strides = {};
  int64_t group = 1;
  bool channels_last = false;
  static constexpr auto fields = std::tuple{field("auto_pad", &QLinearConv::auto_pad),
                                            field("dilations", &QLinearConv::dilations),
                                            field("group", &QLinearConv::group),
                                            field("kernel_shape", &QLinearConv::kernel_shape),
                                            field("pads", &QLinearConv::pads),
                                            field("strides", &QLinearConv::strides),
                                            field("channels_last", &QLinearConv::channels_last)};
  static const Op op;
};

/// Depthwise 1-d convolution that looks back only. Inputs: X [N, C, L], W [C, 1, k], B? [C],
/// past? [N, C, k-1] (zeros when left out). Outputs: Y [N, C, L], present [N, C, k-1]: the last
/// k-1 columns of past followed by X. activation: "none", "silu" or "swish" (the same).
struct CausalConvWithState {
  std::string activation = "none";
  static constexpr auto fields = std::tuple{field("activation", &CausalConvWithState::activation)};
  static const Op op;
};

}  // namespace dais
