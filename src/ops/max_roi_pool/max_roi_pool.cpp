#include "ops/max_roi_pool/max_roi_pool.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/call.h"
#include "ir/inference.h"
#include "ops/gather/indices.h"
#include "ops/max_roi_pool/bin_span.cuh"
#include "ops/wide.h"

namespace dais {
namespace {

void infer(Inference& c) {
  c.set(0, c.dtype(0));
  const auto& pooled = c.attrs<MaxRoiPool>().pooled_shape;
  c.require(pooled.size() == 2 && pooled[0] > 0 && pooled[1] > 0,
            "pooled_shape is not a height and a width");
  const Dims &in = c.shape(0), &rois = c.shape(1);
  c.require(in.size() == 4, "the features are not NCHW");
  c.require(rois.size() == 2, "the boxes are not [n, 5]");
  c.set(0, c.dtype(0), {rois[0], in[1], pooled[0], pooled[1]});
}

/// All bins of one side of a box.
std::vector<BinSpan> bins(double from, double to, double scale, int64_t count, int64_t size) {
  std::vector<BinSpan> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(bin_span(from, to, scale, count, size, i));
  return out;
}

void reference(Call& c) {
  const Tensor& x = c.in(0);
  const auto& attrs = c.attrs<MaxRoiPool>();
  const Shape &in = x.shape(), &rois = c.in(1).shape();
  c.require(in.rank() == 4 && rois.rank() == 2 && rois[1] == 5,
            "the features and boxes do not fit together");
  Tensor& y = c.out(0, Shape{rois[0], in[1], attrs.pooled_shape[0], attrs.pooled_shape[1]});
  const WideView<double> from(x), boxes(c.in(1));
  const double scale = static_cast<double>(attrs.spatial_scale);
  std::vector<double> out;
  for (int64_t n = 0; n < rois[0]; ++n) {
    const double* box = boxes.data() + n * 5;
    for (int k = 0; k < 5; ++k) c.require(std::isfinite(box[k]), "a box is not finite");
    const int64_t batch =
        checked_index(c, static_cast<int64_t>(std::clamp(box[0], -1e9, 1e9)), in[0]);
    const auto rows = bins(box[2], box[4], scale, attrs.pooled_shape[0], in[2]);
    const auto columns = bins(box[1], box[3], scale, attrs.pooled_shape[1], in[3]);
    for (int64_t channel = 0; channel < in[1]; ++channel) {
      const double* plane = from.data() + (batch * in[1] + channel) * in[2] * in[3];
      for (const auto& [top, bottom] : rows)
        for (const auto& [left, right] : columns) {
          const bool empty = top >= bottom || left >= right;
          double best = empty ? 0 : -std::numeric_limits<double>::infinity();
          for (int64_t i = top; i < bottom; ++i)
            for (int64_t j = left; j < right; ++j) best = std::max(best, plane[i * in[3] + j]);
          out.push_back(best);
        }
    }
  }
  store_wide<double>(y, 0, out.data(), y.elements());
}

}  // namespace

const Op MaxRoiPool::op{
    .name = "max_roi_pool",
    .attrs = &AttrsOf<MaxRoiPool>::info,
    .infer = infer,
    .reference = reference,
    .onnx = {{"MaxRoiPool"}},
};

namespace ops {
void define_max_roi_pool(OpRegistry& registry) { registry.add(MaxRoiPool::op); }
}  // namespace ops
}  // namespace dais
