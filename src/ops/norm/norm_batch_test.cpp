#include "ops/norm/norm.h"
#include "runtime/row_test.h"

namespace dais {
namespace {

Tensor shifted(const Tensor& from, float by) {
  Tensor out = from.clone();
  for (float& value : out.data<float>()) value += by;
  return out;
}

TEST(BatchNormRows, AgreeInBothLayouts) {
  for (const bool last : {false, true})
    for (const int64_t batch : {1, 3, 40}) {
      const Shape x = last ? Shape{batch, 9, 5, 19} : Shape{batch, 19, 9, 5};
      // A mean far from zero must not cost digits.
      const Tensor values = shifted(sample<float>(x, 2), 30);
      const Tensor scale = sample<float>(Shape{19}, 2, 2), bias = sample<float>(Shape{19}, 2, 3);
      const Tensor mean = sample<float>(Shape{19}, 2, 4),
                   variance = shifted(sample<float>(Shape{19}, 1, 5), 1.5F);
      const RowTolerance tolerance{.relative = 2e-5, .absolute = 2e-5};
      const BatchNormalization attrs{.training_mode = true, .channels_last = last};
      EXPECT_GT(check_rows(attrs, {values, scale, bias, mean, variance}, tolerance, {}, 5), 0);
      const Tensor near = shifted(sample<float>(Shape{19}, 0.1, 6), 30);
      EXPECT_GT(check_rows(BatchNormalizationBackward{.channels_last = last},
                           {sample<float>(x, 1, 7), values, scale, near, variance},
                           {.relative = 1e-4, .absolute = 1e-3}, {}, 3),
                0);
    }
}

/// Activations in bf16, moments in f32: results are rounded once, to one unit in 2^8.
TEST(BatchNormRows, AgreeForHalves) {
  for (const bool last : {false, true})
    for (const int64_t batch : {2, 500}) {
      const Shape x = last ? Shape{batch, 9, 5, 19} : Shape{batch, 19, 9, 5};
      const Tensor values = in_half(sample<float>(x, 2)), slopes = in_half(sample<float>(x, 1, 7));
      const Tensor scale = sample<float>(Shape{19}, 2, 2), bias = sample<float>(Shape{19}, 2, 3);
      const Tensor mean = sample<float>(Shape{19}, 0.1, 4),
                   variance = shifted(sample<float>(Shape{19}, 1, 5), 1.5F);
      const RowTolerance tolerance{.relative = 0x1p-8, .absolute = 1e-3};
      const BatchNormalization attrs{.training_mode = true, .channels_last = last};
      EXPECT_GT(check_rows(attrs, {values, scale, bias, mean, variance}, tolerance, {}, 5), 0);
      EXPECT_GT(check_rows(BatchNormalizationBackward{.channels_last = last},
                           {slopes, values, scale, mean, variance}, tolerance, {}, 3),
                0);
    }
}

}  // namespace
}  // namespace dais
