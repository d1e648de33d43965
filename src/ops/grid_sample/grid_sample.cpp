#include "ops/grid_sample/grid_sample.h"

#include "ir/call.h"
#include "ir/inference.h"
#include "ir/onnx_export.h"
#include "ir/onnx_import.h"
#include "ops/dims.h"
#include "ops/grid_sample/samplers.h"
#include "ops/wide.h"

namespace dais {
namespace {

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  const auto& attrs = c.attrs<GridSample>();
  if (attrs.mode != "linear" && attrs.mode != "nearest" && attrs.mode != "cubic")
    c.fail("the mode '" + attrs.mode + "' is unknown", "Use linear, nearest or cubic");
  if (attrs.padding_mode != "zeros" && attrs.padding_mode != "border" &&
      attrs.padding_mode != "reflection")
    c.fail("the padding mode '" + attrs.padding_mode + "' is unknown",
           "Use zeros, border or reflection");
  const Dims &image = c.shape(0), &grid = c.shape(1);
  c.require(image.size() >= 3 && grid.size() == image.size(),
            "the image and the grid do not fit together");
  if (grid.back().is_constant() && !grid.back().is(static_cast<int64_t>(image.size()) - 2))
    c.fail("the grid holds " + grid.back().text() + " coordinates for an image of rank " +
           std::to_string(image.size()));
  Dims out{merge_dim(c, image[0], grid[0], "batches of image and grid"), image[1]};
  out.insert(out.end(), grid.begin() + 1, grid.end() - 1);
  c.set(0, c.dtype(0), out);
}

/// The weighted elements of a whole cell: the product of the axes' taps.
struct CellTaps {
  std::vector<int64_t> offset;
  std::vector<double> weight;

  void start() {
    offset.assign(1, 0);
    weight.assign(1, 1);
  }
  void cross(const AxisSampler::Taps& taps, size_t count, int64_t step) {
    const size_t before = offset.size();
    std::vector<int64_t> offsets;
    std::vector<double> weights;
    for (size_t i = 0; i < before; ++i)
      for (size_t k = 0; k < count; ++k) {
        if (taps.index[k] < 0) continue;
        offsets.push_back(offset[i] + taps.index[k] * step);
        weights.push_back(weight[i] * static_cast<double>(taps.weight[k]));
      }
    offset.swap(offsets);
    weight.swap(weights);
  }
};

void reference(Call& c) {
  const Tensor &x = c.in(0), &grid = c.in(1);
  const Shape &image = x.shape(), &places = grid.shape();
  const auto axes = static_cast<int64_t>(image.rank()) - 2;
  if (axes < 1 || places.rank() != image.rank() || places.back() != axes || places[0] != image[0])
    c.fail("image " + image.text() + " and grid " + places.text() + " do not fit together");
  Shape shape{image[0], image[1]};
  for (size_t axis = 1; axis + 1 < places.rank(); ++axis) shape.push_back(places[axis]);
  Tensor& y = c.out(0, shape);
  if (y.elements() == 0) return;
  const int64_t area = image.elements(2, image.rank());
  c.require(area > 0, "the image is empty");
  const int64_t cells = shape.elements(2, shape.rank());
  const auto samplers = make_samplers(c.attrs<GridSample>(), image);
  const Shape steps = strides_of(image);
  const WideView<double> from(x);
  const WideView<float> at(grid);
  std::vector<double> out(static_cast<size_t>(y.elements()));
  const auto count = static_cast<size_t>(sample_taps(sample_mode(c.attrs<GridSample>())));
  CellTaps taps;
  for (int64_t n = 0; n < image[0]; ++n)
    for (int64_t cell = 0; cell < cells; ++cell) {
      const float* place = at.data() + (n * cells + cell) * axes;
      taps.start();
      for (int64_t axis = 0; axis < axes; ++axis)
        taps.cross(samplers[static_cast<size_t>(axis)].at(place[axes - 1 - axis]), count,
                   steps[static_cast<size_t>(axis) + 2]);
      for (int64_t channel = 0; channel < image[1]; ++channel) {
        const double* plane = from.data() + (n * image[1] + channel) * area;
        double sum = 0;
        for (size_t k = 0; k < taps.offset.size(); ++k)
          sum += plane[taps.offset[k]] * taps.weight[k];
        out[static_cast<size_t>((n * image[1] + channel) * cells + cell)] = sum;
      }
    }
  store_wide<double>(y, 0, out.data(), y.elements());
}

/// Opset 16 had images only and named the modes so.
Values import_16(OnnxImport& x) {
  GridSample attrs = x.attrs<GridSample>();
  if (attrs.mode == "bilinear") attrs.mode = "linear";
  if (attrs.mode == "bicubic") attrs.mode = "cubic";
  return x.emit(attrs, x.in);
}

OnnxNode export_16(const Node& node, int64_t opset) {
  const Dims* image = node.in[0]->type.shape ? &*node.in[0]->type.shape : nullptr;
  if (!image || image->size() != 4) no_form(node, "sampling a volume", opset, 20);
  GridSample attrs = *node.as<GridSample>();
  if (attrs.mode != "nearest") attrs.mode = "bi" + attrs.mode;
  return {.type = {},
          .in = node.in,
          .attributes = {{"mode", attrs.mode},
                         {"padding_mode", attrs.padding_mode},
                         {"align_corners", int64_t{attrs.align_corners}}}};
}

}  // namespace

const Op GridSample::op{
    .name = "grid_sample",
    .attrs = &AttrsOf<GridSample>::info,
    .infer = infer,
    .reference = reference,
    .onnx = {{.type = "GridSample",
              .since = 16,
              .until = 19,
              .import = import_16,
              .export_as = export_16},
             {"GridSample", 20},
             {.type = "GridSample", .domain = "com.microsoft", .import = import_16}},
};

namespace ops {
void define_grid_sample(OpRegistry& registry) { registry.add(GridSample::op); }
}  // namespace ops
}  // namespace dais
