// Rows that read an image at places of real coordinates: the same elements as the CPU's, with the
// same weights.
#include "ops/grid_sample/grid_sample.h"
#include "ops/max_roi_pool/max_roi_pool.h"
#include "ops/roi_align/roi_align.h"
#include "watched_row.h"

namespace dais {
namespace {

const RowTolerance kRounding{1e-5, 1e-5};

/// Places inside the image, on its edge and far outside.
Tensor places(const Shape& shape) {
  Tensor grid = sample<float>(shape, 1.7);
  grid.data<float>()[0] = NAN;
  grid.data<float>()[1] = -1;
  grid.data<float>()[2] = 3e38F;
  return grid;
}

TEST(SamplingRows, GridSampleInEveryMode) {
  for (const char* mode : {"linear", "nearest", "cubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (const bool corners : {false, true}) {
        const GridSample attrs{.mode = mode, .padding_mode = padding, .align_corners = corners};
        const WatchedCase how{.tolerance = kRounding};
        watch_row(attrs, {sample<float>({2, 3, 9, 7}), places({2, 13, 11, 2})}, how);
        watch_row(attrs, {sample<float>({1, 5, 17}), places({1, 70, 1})}, how);
        watch_row(attrs, {sample<float>({1, 2, 4, 5, 6}), places({1, 3, 4, 9, 3})}, how);
      }
}

/// Coordinates half way between two elements go where the CPU's go.
TEST(SamplingRows, GridSampleOnTies) {
  Tensor grid(DType::f32, {1, 1, 64, 2});
  for (size_t i = 0; i < 128; ++i) grid.data<float>()[i] = static_cast<float>(i) / 64 - 1;
  for (const bool corners : {false, true})
    watch_row(GridSample{.mode = "nearest", .align_corners = corners},
              {sample<float>({1, 1, 8, 9}), grid}, {.tolerance = {0, 0}});
}

TEST(SamplingRows, GridSampleWithHalves) {
  const Tensor image = narrowed(sample<float>({1, 3, 9, 7}), DType::f16);
  watch_row(GridSample{}, {image, narrowed(places({1, 5, 8, 2}), DType::f16)},
            {.tolerance = {1e-3, 1e-3}});
  watch_row(GridSample{.mode = "cubic"}, {narrowed(image, DType::bf16), places({1, 5, 8, 2})},
            {.tolerance = {8e-3, 8e-3}});
}

TEST(SamplingRows, GridSampleWritesWholeRuns) {
  watch_row(GridSample{}, {sample<float>({1, 4, 16, 16}), places({1, 16, 32, 2})})
      .expect_coalesced_writes();
}

/// Boxes inside the image, beyond it, of no size and upside down.
Tensor boxes() {
  return Tensor::of<float>(Shape{6, 4}, {0, 0, 12, 9, 3.5F, 1.25F, 9.75F, 20, -4, -4, 2, 2,
                                         5, 5, 5,  5, 40,   40,    60,    70, 9,  9,  2, 3});
}
Tensor owners() { return Tensor::ints(std::vector<int64_t>{0, 1, -1, 0, 1, 1}); }

TEST(SamplingRows, RoiAlignInEveryMode) {
  const Tensor image = sample<float>({2, 6, 14, 11});
  // 30 samples along each axis are more for a bin than shared memory keeps.
  for (const int64_t ratio : {0, 2, 30})
    for (const char* mode : {"avg", "max"})
      for (const char* coordinates : {"half_pixel", "output_half_pixel"}) {
        RoiAlign attrs;
        attrs.mode = mode;
        attrs.coordinate_transformation_mode = coordinates;
        attrs.sampling_ratio = ratio;
        attrs.output_height = 3;
        attrs.output_width = 4;
        attrs.spatial_scale = 0.8F;
        watch_row(attrs, {image, boxes(), owners()}, {.tolerance = kRounding});
      }
}

TEST(SamplingRows, RoiAlignOfManyBins) {
  RoiAlign attrs;
  attrs.output_height = attrs.output_width = 14;
  attrs.sampling_ratio = 2;
  const Tensor image = sample<float>({2, 5, 14, 11});
  watch_row(attrs, {image, boxes(), owners()}, {.tolerance = kRounding});
  watch_row(attrs, {narrowed(image, DType::f16), narrowed(boxes(), DType::f16), owners()},
            {.tolerance = {1e-3, 1e-3}});
}

TEST(SamplingRows, MaxRoiPool) {
  const Tensor rois =
      Tensor::of<float>(Shape{5, 5}, {0, 0, 0, 12, 9, 1, 3.5F, 1.25F, 9.75F, 20, -1, -4, -4,
                                      2, 2, 0, 5,  5, 5, 5,    1,     40,    40, 60, 70});
  const Tensor image = sample<float>({2, 3, 14, 11});
  for (const float scale : {1.0F, 0.75F}) {
    const MaxRoiPool attrs{.pooled_shape = {3, 4}, .spatial_scale = scale};
    watch_row(attrs, {image, rois}, {.tolerance = {0, 0}}).expect_coalesced_writes();
    watch_row(attrs, {narrowed(image, DType::f16), rois}, {.tolerance = {0, 0}});
  }
}

}  // namespace
}  // namespace dais
