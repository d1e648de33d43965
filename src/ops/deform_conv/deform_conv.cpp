#include "ops/deform_conv/deform_conv.h"

#include <algorithm>
#include <cmath>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/dims.h"
#include "ops/wide.h"
#include "ops/window.h"

namespace dais {
namespace {

template <typename Context>
Window make_taps_window(const Context& c, const std::vector<int64_t>& kernel) {
  const auto& attrs = c.template attrs<DeformConv>();
  if (!attrs.kernel_shape.empty() && attrs.kernel_shape != kernel)
    c.fail("kernel_shape differs from the weights");
  return make_window(c, kernel, attrs.strides, attrs.dilations, attrs.pads, "NOTSET");
}

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  const Dims &in = c.shape(0), &weights = c.shape(1), &offsets = c.shape(2);
  c.require(in.size() == 4 && weights.size() == 4 && offsets.size() == 4,
            "deformable convolution is for images [N, C, H, W]");
  const auto& attrs = c.attrs<DeformConv>();
  c.require(attrs.group > 0 && attrs.offset_group > 0, "group counts are not positive");
  Dims out{in[0], weights[0], offsets[2], offsets[3]};
  const auto height = weights[2].constant(), width = weights[3].constant();
  if (height && width) {
    const Window window = make_taps_window(c, {*height, *width});
    for (size_t axis = 0; axis < 2; ++axis)
      out[axis + 2] = merge_dim(c, window.positions(axis, in[axis + 2]), offsets[axis + 2],
                                "sizes of the result and the offsets");
  }
  c.set(0, c.dtype(0), out);
}

double sample(const double* plane, int64_t height, int64_t width, double y, double x) {
  if (!(y > -1 && x > -1 && y < static_cast<double>(height) && x < static_cast<double>(width)))
    return 0;
  const double top = std::floor(y), left = std::floor(x);
  const double v = y - top, h = x - left;
  auto at = [&](double row, double column) {
    const auto i = static_cast<int64_t>(row), j = static_cast<int64_t>(column);
    return i < 0 || j < 0 || i >= height || j >= width ? 0.0 : plane[i * width + j];
  };
  return (1 - v) * ((1 - h) * at(top, left) + h * at(top, left + 1)) +
         v * ((1 - h) * at(top + 1, left) + h * at(top + 1, left + 1));
}

struct Sizes {
  int64_t batch, channels, height, width, outputs, group_channels, taps, out_height, out_width;
};

Sizes check_sizes(const Call& c, const Window& window) {
  const Shape &x = c.in(0).shape(), &w = c.in(1).shape(), &offsets = c.in(2).shape();
  const auto& attrs = c.attrs<DeformConv>();
  Sizes s{x[0], x[1], x[2], x[3], w[0], w[1], w[2] * w[3], 0, 0};
  s.out_height = window.positions(0, s.height);
  s.out_width = window.positions(1, s.width);
  const int64_t groups = attrs.offset_group;
  c.require(s.group_channels * attrs.group == s.channels && s.outputs % attrs.group == 0 &&
                s.channels % groups == 0,
            "the channels do not fit the groups");
  c.require(offsets == (Shape{s.batch, groups * s.taps * 2, s.out_height, s.out_width}),
            "the offsets do not fit the kernel and the result");
  if (c.has(3)) c.require(c.in(3).shape() == (Shape{s.outputs}), "the bias does not fit");
  if (c.has(4))
    c.require(c.in(4).shape() == (Shape{s.batch, groups * s.taps, s.out_height, s.out_width}),
              "the mask does not fit the kernel and the result");
  return s;
}

/// Samples of one image under every tap: [channels, taps, out].
std::vector<double> sample_taps(const Call& c, const Window& window, const Sizes& s, int64_t n,
                                const WideView<double>& x, const WideView<double>& offsets,
                                const WideView<double>* mask) {
  const int64_t area = s.out_height * s.out_width, columns = window.kernel[1];
  const int64_t groups = c.attrs<DeformConv>().offset_group, per_group = s.channels / groups;
  std::vector<double> out(static_cast<size_t>(s.channels * s.taps * area));
  double* to = out.data();
  for (int64_t channel = 0; channel < s.channels; ++channel)
    for (int64_t tap = 0; tap < s.taps; ++tap)
      for (int64_t cell = 0; cell < area; ++cell, ++to) {
        const int64_t place = (n * groups + channel / per_group) * s.taps + tap;
        const double dy = offsets[place * 2 * area + cell];
        const double dx = offsets[(place * 2 + 1) * area + cell];
        const int64_t y = cell / s.out_width * window.strides[0] - window.pads[0] +
                          tap / columns * window.dilations[0];
        const int64_t h = cell % s.out_width * window.strides[1] - window.pads[1] +
                          tap % columns * window.dilations[1];
        *to = sample(x.data() + (n * s.channels + channel) * s.height * s.width, s.height, s.width,
                     static_cast<double>(y) + dy, static_cast<double>(h) + dx);
        if (mask) *to *= (*mask)[place * area + cell];
      }
  return out;
}

void reference(Call& c) {
  for (size_t i = 0; i < 3; ++i) c.require(c.in(i).rank() == 4, "inputs must be of rank 4");
  const Shape& w = c.in(1).shape();
  const Window window = make_taps_window(c, {w[2], w[3]});
  const Sizes s = check_sizes(c, window);
  Tensor& y = c.out(0, Shape{s.batch, s.outputs, s.out_height, s.out_width});
  const WideView<double> x(c.in(0)), weights(c.in(1)), offsets(c.in(2));
  std::optional<WideView<double>> bias, mask;
  if (c.has(3)) bias.emplace(c.in(3));
  if (c.has(4)) mask.emplace(c.in(4));
  const int64_t area = s.out_height * s.out_width;
  const int64_t terms = s.group_channels * s.taps;
  const int64_t per_group = s.outputs / c.attrs<DeformConv>().group;
  std::vector<double> line(static_cast<size_t>(area));
  for (int64_t n = 0; n < s.batch; ++n) {
    const auto taps = sample_taps(c, window, s, n, x, offsets, mask ? &*mask : nullptr);
    for (int64_t output = 0; output < s.outputs; ++output) {
      std::fill(line.begin(), line.end(), bias ? (*bias)[output] : 0);
      const double* from = taps.data() + output / per_group * terms * area;
      for (int64_t term = 0; term < terms; ++term) {
        const double weight = weights[output * terms + term];
        for (int64_t cell = 0; cell < area; ++cell)
          line[static_cast<size_t>(cell)] += weight * from[term * area + cell];
      }
      store_wide<double>(y, (n * s.outputs + output) * area, line.data(), area);
    }
  }
}

}  // namespace

const Op DeformConv::op{
    .name = "deform_conv",
    .attrs = &AttrsOf<DeformConv>::info,
    .infer = infer,
    .reference = reference,
    .onnx = {{"DeformConv", 19}},
};

namespace ops {
void define_deform_conv(OpRegistry& registry) { registry.add(DeformConv::op); }
}  // namespace ops
}  // namespace dais
