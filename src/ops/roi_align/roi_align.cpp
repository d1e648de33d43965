#include "ops/roi_align/roi_align.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_export.h"
#include "ir/onnx_import.h"
#include "ops/dims.h"
#include "ops/gather/indices.h"
#include "ops/wide.h"

namespace dais {
namespace {

constexpr int64_t kMaxGrid = 1 << 14, kMaxSamples = 1 << 26;

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  const auto& attrs = c.attrs<RoiAlign>();
  if (attrs.mode != "avg" && attrs.mode != "max")
    c.fail("the mode '" + attrs.mode + "' is unknown", "Use avg or max");
  c.require(attrs.output_height > 0 && attrs.output_width > 0 && attrs.sampling_ratio >= 0 &&
                attrs.sampling_ratio <= kMaxGrid && attrs.output_height <= kMaxGrid &&
                attrs.output_width <= kMaxGrid,
            "the output size or the sampling ratio is out of range");
  const Dims &in = c.shape(0), &boxes = c.shape(1);
  c.require(in.size() == 4, "the features are not NCHW");
  c.require(boxes.size() == 2, "the boxes are not [n, 4]");
  c.set(0, c.dtype(0), {boxes[0], in[1], attrs.output_height, attrs.output_width});
}

/// One bilinear sample: four elements of a plane.
struct Sample {
  std::array<int64_t, 4> at{};
  std::array<double, 4> weight{};
};

/// Lower neighbour, upper neighbour and distance along one axis.
struct Neighbours {
  int64_t low, high;
  double rest;
};

Neighbours neighbours(double x, int64_t size) {
  x = std::max(x, 0.0);
  const auto low = static_cast<int64_t>(x);
  if (low >= size - 1) return {size - 1, size - 1, 0};
  return {low, low + 1, x - static_cast<double>(low)};
}

Sample make_sample(double y, double x, int64_t height, int64_t width) {
  Sample out;
  // Far outside the plane a sample is zero.
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width)))
    return out;
  const Neighbours v = neighbours(y, height), h = neighbours(x, width);
  out.at = {v.low * width + h.low, v.low * width + h.high, v.high * width + h.low,
            v.high * width + h.high};
  out.weight = {(1 - v.rest) * (1 - h.rest), (1 - v.rest) * h.rest, v.rest * (1 - h.rest),
                v.rest * h.rest};
  return out;
}

/// Samples of every bin of one box, bin by bin.
struct BoxSamples {
  std::vector<Sample> samples;
  int64_t per_bin = 0;
};

BoxSamples sample_box(const Call& c, const double* box, int64_t height, int64_t width) {
  const auto& attrs = c.attrs<RoiAlign>();
  const bool half = attrs.coordinate_transformation_mode == "half_pixel";
  const double scale = static_cast<double>(attrs.spatial_scale), shift = half ? 0.5 : 0;
  const double left = box[0] * scale - shift, top = box[1] * scale - shift;
  double wide = box[2] * scale - shift - left, high = box[3] * scale - shift - top;
  if (!half) {
    wide = std::max(wide, 1.0);
    high = std::max(high, 1.0);
  }
  const double bin_high = high / static_cast<double>(attrs.output_height);
  const double bin_wide = wide / static_cast<double>(attrs.output_width);
  auto grid = [&](double bin) -> int64_t {
    if (attrs.sampling_ratio > 0) return attrs.sampling_ratio;
    if (!(bin < static_cast<double>(kMaxGrid))) c.fail("a box is too large to be sampled");
    return std::max<int64_t>(0, static_cast<int64_t>(std::ceil(bin)));
  };
  const int64_t rows = grid(bin_high), columns = grid(bin_wide);
  BoxSamples out;
  out.per_bin = rows * columns;
  if (out.per_bin > kMaxSamples / (attrs.output_height * attrs.output_width))
    c.fail("a box is too large to be sampled");
  for (int64_t i = 0; i < attrs.output_height; ++i)
    for (int64_t j = 0; j < attrs.output_width; ++j)
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column) {
          const double y =
              top + bin_high * (static_cast<double>(i) +
                                (static_cast<double>(row) + 0.5) / static_cast<double>(rows));
          const double x =
              left + bin_wide * (static_cast<double>(j) + (static_cast<double>(column) + 0.5) /
                                                              static_cast<double>(columns));
          out.samples.push_back(make_sample(y, x, height, width));
        }
  return out;
}

double pool_bin(const Sample* samples, int64_t count, const double* plane, bool average) {
  double sum = 0, top = 0;
  for (int64_t i = 0; i < count; ++i)
    for (size_t k = 0; k < 4; ++k) {
      const double value = samples[i].weight[k] * plane[samples[i].at[k]];
      sum += value;
      top = i == 0 && k == 0 ? value : std::max(top, value);
    }
  return average ? sum / static_cast<double>(std::max<int64_t>(count, 1)) : top;
}

void reference(Call& c) {
  const Tensor& x = c.in(0);
  const auto& attrs = c.attrs<RoiAlign>();
  const Shape &in = x.shape(), &boxes = c.in(1).shape();
  c.require(
      in.rank() == 4 && boxes.rank() == 2 && boxes[1] == 4 && c.in(2).shape() == (Shape{boxes[0]}),
      "the features, boxes and batch indices do not fit together");
  const auto batches = checked_indices(c, c.in(2), in[0]);
  const int64_t area = in[2] * in[3], bins = attrs.output_height * attrs.output_width;
  c.require(area > 0 || boxes[0] == 0, "the features are empty");
  Tensor& y = c.out(0, Shape{boxes[0], in[1], attrs.output_height, attrs.output_width});
  const WideView<double> from(x), corners(c.in(1));
  std::vector<double> out(static_cast<size_t>(y.elements()));
  double* to = out.data();
  for (int64_t n = 0; n < boxes[0]; ++n) {
    const BoxSamples box = sample_box(c, corners.data() + n * 4, in[2], in[3]);
    for (int64_t channel = 0; channel < in[1]; ++channel) {
      const double* plane =
          from.data() + (batches[static_cast<size_t>(n)] * in[1] + channel) * area;
      for (int64_t bin = 0; bin < bins; ++bin)
        *to++ = pool_bin(box.samples.data() + bin * box.per_bin, box.per_bin, plane,
                         attrs.mode == "avg");
    }
  }
  store_wide<double>(y, 0, out.data(), y.elements());
}

/// Opset 10 knew no half-pixel shift.
Values import_10(OnnxImport& x) {
  RoiAlign attrs = x.attrs<RoiAlign>();
  attrs.coordinate_transformation_mode = "output_half_pixel";
  return x.emit(attrs, x.in);
}

OnnxNode export_10(const Node& node, int64_t opset) {
  const auto& attrs = *node.as<RoiAlign>();
  if (attrs.coordinate_transformation_mode != "output_half_pixel")
    no_form(node, "a shift of half a pixel", opset, 16);
  OnnxNode out = export_plainly(node, opset);
  std::erase_if(out.attributes,
                [](const auto& one) { return one.first == "coordinate_transformation_mode"; });
  return out;
}

}  // namespace

const Op RoiAlign::op{
    .name = "roi_align",
    .attrs = &AttrsOf<RoiAlign>::info,
    .infer = infer,
    .reference = reference,
    .onnx = {{.type = "RoiAlign",
              .since = 10,
              .until = 15,
              .import = import_10,
              .export_as = export_10},
             {"RoiAlign", 16}},
};

namespace ops {
void define_roi_align(OpRegistry& registry) { registry.add(RoiAlign::op); }
}  // namespace ops
}  // namespace dais
