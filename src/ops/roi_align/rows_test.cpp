#include "ops/roi_align/roi_align.h"
#include "runtime/row_test.h"

namespace dais {
namespace {

const RowTolerance kRounding{1e-5, 1e-5};

Tensor boxes() {
  return Tensor::of<float>(
      Shape{5, 4}, {0, 0, 12, 9, 3.5F, 1.25F, 9.75F, 20, -4, -4, 2, 2, 5, 5, 5, 5, 40, 40, 60, 70});
}

TEST(RoiAlignRows, EveryModeAgreesWithTheReference) {
  const Tensor image = sample<float>({2, 6, 14, 11});
  for (const char* mode : {"avg", "max"})
    for (const char* coordinates : {"half_pixel", "output_half_pixel"})
      for (const int64_t ratio : {0, 2, 9}) {
        RoiAlign attrs;
        attrs.mode = mode;
        attrs.coordinate_transformation_mode = coordinates;
        attrs.sampling_ratio = ratio;
        attrs.output_height = 3;
        attrs.output_width = 4;
        attrs.spatial_scale = 0.8F;
        const Tensor batches = Tensor::ints(std::vector<int64_t>{0, 1, 1, 0, 1});
        EXPECT_GT(check_rows(attrs, {image, boxes(), batches}, kRounding), 0) << mode << ratio;
      }
}

}  // namespace
}  // namespace dais
