#pragma once

#include "ir/op.h"

namespace dais {

/// The largest element of each window. Outputs: Y, Indices? (i64: position in X flattened, in
/// row-major order, or with the last two spatial axes swapped when storage_order is 1). With
/// channels_last X and outputs are [N, space..., C]; Indices still count in channels-first order.
struct MaxPool {
  std::string auto_pad = "NOTSET";
  bool ceil_mode = false;
  std::vector<int64_t> dilations = {}, kernel_shape = {}, pads = {}, strides = {};
  int64_t storage_order = 0;
  bool channels_last = false;
  static constexpr auto fields = std::tuple{
      field("auto_pad", &MaxPool::auto_pad),   field("ceil_mode", &MaxPool::ceil_mode),
      field("dilations", &MaxPool::dilations), field("kernel_shape", &MaxPool::kernel_shape),
      field("pads", &MaxPool::pads),           field("storage_order", &MaxPool::storage_order),
      field("strides", &MaxPool::strides),     field("channels_last", &MaxPool::channels_last)};
  static const Op op;
};

/// (dy, X, Y): the gradient of MaxPool. Each window hands dy to its first element that equals Y.
struct MaxPoolBackward {
  std::string auto_pad = "NOTSET";
  bool ceil_mode = false;
  std::vector<int64_t> dilations = {}, kernel_shape = {}, pads = {}, strides = {};
  bool channels_last = false;
  static constexpr auto fields =
      std::tuple{field("auto_pad", &MaxPoolBackward::auto_pad),
                 field("ceil_mode", &MaxPoolBackward::ceil_mode),
                 field("dilations", &MaxPoolBackward::dilations),
                 field("kernel_shape", &MaxPoolBackward::kernel_shape),
                 field("pads", &MaxPoolBackward::pads),
                 field("strides", &MaxPoolBackward::strides),
                 field("channels_last", &MaxPoolBackward::channels_last)};
  static const Op op;
};

/// (dy, sizes of X: i64 list): the gradient of AveragePool, or of the sum of each window.
struct AveragePoolBackward {
  std::string auto_pad = "NOTSET";
  bool ceil_mode = false;
  bool count_include_pad = false;
  std::vector<int64_t> dilations = {}, kernel_shape = {}, pads = {}, strides = {};
  bool channels_last = false;
  bool sum = false;
  static constexpr auto fields =
      std::tuple{field("auto_pad", &AveragePoolBackward::auto_pad),
                 field("ceil_mode", &AveragePoolBackward::ceil_mode),
                 field("count_include_pad", &AveragePoolBackward::count_include_pad),
                 field("dilations", &AveragePoolBackward::dilations),
                 field("kernel_shape", &AveragePoolBackward::kernel_shape),
                 field("pads", &AveragePoolBackward::pads),
                 field("strides", &AveragePoolBackward::strides),
                 field("channels_last", &AveragePoolBackward::channels_last),
                 field("sum", &AveragePoolBackward::sum)};
  static const Op op;
};

/// The mean of each window: over real elements, or with count_include_pad over all cells that lie
/// within the padded input.
struct AveragePool {
  std::string auto_pad = "NOTSET";
  bool ceil_mode = false;
  bool count_include_pad = false;
  std::vector<int64_t> dilations = {}, kernel_shape = {}, pads = {}, strides = {};
  bool channels_last = false;
  static constexpr auto fields =
      std::tuple{field("auto_pad", &AveragePool::auto_pad),
                 field("ceil_mode", &AveragePool::ceil_mode),
                 field("count_include_pad", &AveragePool::count_include_pad),
                 field("dilations", &AveragePool::dilations),
                 field("kernel_shape", &AveragePool::kernel_shape),
                 field("pads", &AveragePool::pads),
                 field("strides", &AveragePool::strides),
                 field("channels_last", &AveragePool::channels_last)};
  static const Op op;
};

/// The p-norm of each window.
struct LpPool {
  std::string auto_pad = "NOTSET";
  bool ceil_mode = false;
  std::vector<int64_t> dilations = {}, kernel_shape = {}, pads = {}, strides = {};
  int64_t p = 2;
  bool channels_last = false;
  static constexpr auto fields = std::tuple{field("auto_pad", &LpPool::auto_pad),
                                            field("ceil_mode", &LpPool::ceil_mode),
                                            field("dilations", &LpPool::dilations),
                                            field("kernel_shape", &LpPool::kernel_shape),
                                            field("p", &LpPool::p),
                                            field("pads", &LpPool::pads),
                                            field("strides", &LpPool::strides),
                                            field("channels_last", &LpPool::channels_last)};
  static const Op op;
};

/// Mean, maximum and p-norm over all spatial axes, which are kept with size 1.
struct GlobalAveragePool {
  bool channels_last = false;
  static constexpr auto fields =
      std::tuple{field("channels_last", &GlobalAveragePool::channels_last)};
  static const Op op;
};
struct GlobalMaxPool {
  bool channels_last = false;
  static constexpr auto fields = std::tuple{field("channels_last", &GlobalMaxPool::channels_last)};
  static const Op op;
};
struct GlobalLpPool {
  int64_t p = 2;
  bool channels_last = false;
  static constexpr auto fields = std::tuple{field("p", &GlobalLpPool::p),
                                            field("channels_last", &GlobalLpPool::channels_last)};
  static const Op op;
};

}  // namespace dais
