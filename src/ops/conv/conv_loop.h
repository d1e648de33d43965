#pragma once

#include "ops/window.h"

namespace dais {

/// The sizes of one convolution.
struct ConvSizes {
  Activation x, y;
  int64_t group = 1;
  int64_t kernel_cells = 1;
  Taps taps;
};

/// Output type of the convolution of input x with weights w by the attributes of S; checks them.
template <typename S>
Dims conv_dims(const Inference& c, const S& attrs, const Dims& x, const Dims& w);

template <typename S>
ConvSizes conv_sizes(const Call& c, const S& attrs, const Shape& x, const Shape& w);

/// Sums in channels-first order. x and w are channels-first; T is float or double.
template <typename T>
std::vector<double> conv_loop(const ConvSizes& sizes, const T* x, const T* w);

/// Gradients of the same: of x from that of y, and of w.
template <typename T>
std::vector<double> conv_data_loop(const ConvSizes& sizes, const T* dy, const T* w);
template <typename T>
std::vector<double> conv_weights_loop(const ConvSizes& sizes, const T* x, const T* dy);

}  // namespace dais
