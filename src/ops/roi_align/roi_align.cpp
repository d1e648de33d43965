#include "ops/roi_align/roi_align.h"

#include <algorithm>

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_export.h"
#include "ir/onnx_import.h"
#include "ops/dims.h"
#include "ops/gather/indices.h"
#include "ops/roi_align/box_rules.h"
#include "ops/wide.h"

namespace dais {
namespace {

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  const auto& attrs = c.attrs<RoiAlign>();
  if (attrs.mode != "avg" && attrs.mode != "max")
    c.fail("the mode '" + attrs.mode + "' is unknown", "Use avg or max");
  c.require(attrs.output_height > 0 && attrs.output_width > 0 && attrs.sampling_ratio >= 0 &&
                attrs.sampling_ratio <= BoxGrid::kMaxGrid &&
                attrs.output_height <= BoxGrid::kMaxGrid && attrs.output_width <= BoxGrid::kMaxGrid,
            "the output size or the sampling ratio is out of range");
  const Dims &in = c.shape(0), &boxes = c.shape(1);
  c.require(in.size() == 4, "the features are not NCHW");
  c.require(boxes.size() == 2, "the boxes are not [n, 4]");
  c.set(0, c.dtype(0), {boxes[0], in[1], attrs.output_height, attrs.output_width});
}

/// Samples of every bin of one box, bin by bin.
struct BoxSamples {
  std::vector<BoxSample> samples;
  int64_t per_bin = 0;
};

BoxSamples sample_box(const Call& c, const double* corners, int64_t height, int64_t width) {
  const auto& attrs = c.attrs<RoiAlign>();
  const BoxGrid box = BoxGrid::of(box_rules(attrs), corners);
  if (!box.fits) c.fail("a box is too large to be sampled");
  BoxSamples out;
  out.per_bin = box.rows * box.columns;
  for (int64_t i = 0; i < attrs.output_height; ++i)
    for (int64_t j = 0; j < attrs.output_width; ++j)
      for (int64_t k = 0; k < out.per_bin; ++k)
        out.samples.push_back(box.sample(i, j, k, height, width));
  return out;
}

double pool_bin(const BoxSample* samples, int64_t count, const double* plane, bool average) {
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
