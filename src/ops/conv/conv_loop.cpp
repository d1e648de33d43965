#include "ops/conv/conv_loop.h"

#include <algorithm>

#include "base/threads.h"
#include "ops/conv/conv.h"

namespace dais {
namespace {

constexpr int64_t kTogether = 4;  // output channels that share one reading of the input

std::vector<int64_t> kernel_of(const std::vector<int64_t>& given, const Shape& w) {
  return given.empty() ? std::vector<int64_t>(w.begin() + 2, w.end()) : given;
}

template <typename T>
void add_run(const Tap& tap, int64_t step, const T* x, const double* w, int64_t channels,
             int64_t cells, double* sums) {
  for (int64_t m = 0; m < channels; ++m) {
    double* to = sums + m * cells + tap.out;
    const T* from = x + tap.in;
    const double factor = w[m];
    if (step == 1)
      for (int64_t i = 0; i < tap.count; ++i) to[i] += factor * static_cast<double>(from[i]);
    else
      for (int64_t i = 0; i < tap.count; ++i) to[i] += factor * static_cast<double>(from[i * step]);
  }
}

}  // namespace

template <typename S>
Dims conv_dims(const Inference& c, const S& attrs, const Dims& x, const Dims& w) {
  c.require(x.size() >= 3 && w.size() == x.size(), "X and W must have the same rank of at least 3");
  c.require(attrs.group >= 1, "group must be positive");
  const size_t rank = x.size() - 2;
  std::vector<int64_t> kernel = attrs.kernel_shape;
  for (size_t axis = 0; axis < rank; ++axis) {
    const auto size = w[axis + 2].constant();
    if (axis < attrs.kernel_shape.size() && size && *size != attrs.kernel_shape[axis])
      c.fail("kernel_shape does not match the weights, which are " + dims_text(w));
    if (!attrs.kernel_shape.empty()) continue;
    if (!size) c.fail("the kernel's size is unknown", "State kernel_shape");
    kernel.push_back(*size);
  }
  c.require(kernel.size() == rank, "kernel_shape must have one entry for each spatial axis");
  const Dim& channels = x[channel_axis(x.size(), attrs.channels_last)];
  if (channels.is_constant() && w[1].is_constant() && !(channels == w[1] * Dim(attrs.group)))
    c.fail("X has " + channels.text() + " channels, but weights " + dims_text(w) + " with group " +
           std::to_string(attrs.group) + " need " + (w[1] * Dim(attrs.group)).text());
  if (w[0].is_constant() && *w[0].constant() % attrs.group != 0)
    c.fail("group does not divide the " + w[0].text() + " output channels");
  const Window window =
      make_window(c, kernel, attrs.strides, attrs.dilations, attrs.pads, attrs.auto_pad);
  Dims space = space_of(x, attrs.channels_last);
  for (size_t axis = 0; axis < rank; ++axis) space[axis] = window.positions(axis, space[axis]);
  return activation_dims(x[0], w[0], space, attrs.channels_last);
}

template <typename S>
ConvSizes conv_sizes(const Call& c, const S& attrs, const Shape& x, const Shape& w) {
  c.require(x.rank() >= 3 && w.rank() == x.rank(), "X and W must have the same rank");
  const Window window = make_window(c, kernel_of(attrs.kernel_shape, w), attrs.strides,
                                    attrs.dilations, attrs.pads, attrs.auto_pad);
  ConvSizes out;
  out.x = Activation(x, attrs.channels_last);
  out.group = attrs.group;
  c.require(window.rank() == out.x.space.size() &&
                std::equal(window.kernel.begin(), window.kernel.end(), w.begin() + 2),
            "kernel_shape does not match the weights");
  c.require(out.group >= 1 && out.x.channels == w[1] * out.group && w[0] % out.group == 0,
            "the channels of X, the weights and group do not match");
  out.y = {};
  out.y.batch = out.x.batch;
  out.y.channels = w[0];
  out.kernel_cells = w.elements(2, w.rank());
  std::vector<int64_t> begin;
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    out.y.space.push_back(window.positions(axis, out.x.space[axis]));
    begin.push_back(window.pad_begin(axis, out.x.space[axis], out.y.space[axis]));
  }
  out.taps = make_taps(window, begin, out.x.space, out.y.space);
  return out;
}

template <typename T>
std::vector<double> conv_loop(const ConvSizes& s, const T* x, const T* w) {
  const int64_t in_cells = s.x.cells(), out_cells = s.y.cells();
  const int64_t in_channels = s.x.channels / s.group, out_channels = s.y.channels / s.group;
  const int64_t blocks = (out_channels + kTogether - 1) / kTogether;
  std::vector<double> sums(static_cast<size_t>(s.y.batch * s.y.channels * out_cells));
  parallel_for(s.y.batch * s.group * blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t n = task / (s.group * blocks), g = task / blocks % s.group;
      const int64_t m = task % blocks * kTogether;
      const int64_t together = std::min(kTogether, out_channels - m);
      const int64_t channel = g * out_channels + m;
      double* to = sums.data() + (n * s.y.channels + channel) * out_cells;
      for (int64_t k = 0; k < in_channels; ++k) {
        const T* from = x + (n * s.x.channels + g * in_channels + k) * in_cells;
        for (const Tap& tap : s.taps.list) {
          double factors[kTogether];
          for (int64_t i = 0; i < together; ++i)
            factors[i] = static_cast<double>(
                w[((channel + i) * in_channels + k) * s.kernel_cells + tap.kernel]);
          add_run(tap, s.taps.step, from, factors, together, out_cells, to);
        }
      }
    }
  });
  return sums;
}

template <typename T>
std::vector<double> conv_data_loop(const ConvSizes& s, const T* dy, const T* w) {
  const int64_t x_cells = s.x.cells(), y_cells = s.y.cells(), step = s.taps.step;
  const int64_t in_channels = s.x.channels / s.group, out_channels = s.y.channels / s.group;
  std::vector<double> sums(static_cast<size_t>(s.x.batch * s.x.channels * x_cells));
  parallel_for(s.x.batch * s.x.channels, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t n = task / s.x.channels, channel = task % s.x.channels;
      const int64_t g = channel / in_channels, k = channel % in_channels;
      double* to = sums.data() + task * x_cells;
      for (int64_t m = g * out_channels; m < (g + 1) * out_channels; ++m) {
        const T* from = dy + (n * s.y.channels + m) * y_cells;
        for (const Tap& tap : s.taps.list) {
          const auto factor =
              static_cast<double>(w[(m * in_channels + k) * s.kernel_cells + tap.kernel]);
          for (int64_t i = 0; i < tap.count; ++i)
            to[tap.in + i * step] += factor * static_cast<double>(from[tap.out + i]);
        }
      }
    }
  });
  return sums;
}

template <typename T>
std::vector<double> conv_weights_loop(const ConvSizes& s, const T* x, const T* dy) {
  const int64_t x_cells = s.x.cells(), y_cells = s.y.cells(), step = s.taps.step;
  const int64_t in_channels = s.x.channels / s.group, out_channels = s.y.channels / s.group;
  std::vector<double> sums(static_cast<size_t>(s.y.channels * in_channels * s.kernel_cells));
  parallel_for(s.y.channels * in_channels, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t m = task / in_channels, k = task % in_channels;
      double* to = sums.data() + task * s.kernel_cells;
      for (int64_t n = 0; n < s.x.batch; ++n) {
        const T* from = x + (n * s.x.channels + m / out_channels * in_channels + k) * x_cells;
        const T* slope = dy + (n * s.y.channels + m) * y_cells;
        for (const Tap& tap : s.taps.list) {
          double sum = 0;
          for (int64_t i = 0; i < tap.count; ++i)
            sum += static_cast<double>(from[tap.in + i * step]) *
                   static_cast<double>(slope[tap.out + i]);
          to[tap.kernel] += sum;
        }
      }
    }
  });
  return sums;
}

#define DAIS_CONV_SIZES(S) \
  template ConvSizes conv_sizes<S>(const Call&, const S&, const Shape&, const Shape&)
#define DAIS_CONV(S)                                                                \
  template Dims conv_dims<S>(const Inference&, const S&, const Dims&, const Dims&); \
  DAIS_CONV_SIZES(S)
DAIS_CONV(Conv);
DAIS_CONV(ConvInteger);
DAIS_CONV(QLinearConv);
DAIS_CONV_SIZES(ConvBackwardData);
DAIS_CONV_SIZES(ConvBackwardWeights);
#undef DAIS_CONV
#undef DAIS_CONV_SIZES
#define DAIS_CONV_LOOPS(T)                                                           \
  template std::vector<double> conv_loop(const ConvSizes&, const T*, const T*);      \
  template std::vector<double> conv_data_loop(const ConvSizes&, const T*, const T*); \
  template std::vector<double> conv_weights_loop(const ConvSizes&, const T*, const T*)
DAIS_CONV_LOOPS(float);
DAIS_CONV_LOOPS(double);
#undef DAIS_CONV_LOOPS

}  // namespace dais
