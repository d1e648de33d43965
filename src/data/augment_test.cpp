#include "data/augment.h"

#include <algorithm>
#include <numbers>

#include "data/color.h"
#include "data/testing/files.h"
#include "data/warp.h"

namespace dais::data {
namespace {

Tensor ramp(int64_t height, int64_t width, int64_t channels = 1) {
  Tensor image(DType::u8, {height, width, channels});
  for (int64_t i = 0; i < image.elements(); ++i)
    image.storage<uint8_t>()[i] = static_cast<uint8_t>(i);
  return image;
}

std::vector<int64_t> pixels(const Tensor& image) { return image.to_ints(); }

TEST(DataAugment, WarpsMoveWholePixels) {
  const Tensor image = ramp(2, 3);  // 0 1 2 / 3 4 5
  Warp flip(2, 3);
  flip.flip_horizontal();
  EXPECT_EQ(pixels(flip.image(image, 9)), (std::vector<int64_t>{2, 1, 0, 5, 4, 3}));
  Warp down(2, 3);
  down.flip_vertical();
  EXPECT_EQ(pixels(down.image(image, 9)), (std::vector<int64_t>{3, 4, 5, 0, 1, 2}));
  Warp turn(2, 3);
  turn.turn(1);
  const Tensor turned = turn.image(image, 9);
  EXPECT_EQ(turned.shape(), (Shape{3, 2, 1}));
  EXPECT_EQ(pixels(turned), (std::vector<int64_t>{3, 0, 4, 1, 5, 2}));
  Warp crop(2, 3);
  crop.crop(-1, 1, 3, 2);
  EXPECT_EQ(pixels(crop.image(image, 9)), (std::vector<int64_t>{9, 9, 1, 2, 4, 5}));
  Warp both(2, 3);
  both.flip_horizontal();
  both.crop(0, 0, 2, 2);
  EXPECT_EQ(pixels(both.image(image, 9)), (std::vector<int64_t>{2, 1, 5, 4}));
}

TEST(DataAugment, ARotationByAQuarterIsATurn) {
  const Tensor image = ramp(6, 6);
  Warp turn(6, 6), rotation(6, 6);
  turn.turn(1);
  rotation.rotate(std::numbers::pi / 2, 1);
  EXPECT_EQ(pixels(turn.image(image, 0)), pixels(rotation.image(image, 0)));
}

TEST(DataAugment, BoxesMoveWithTheirImage) {
  Tensor image(DType::u8, {20, 30, 1});
  std::fill_n(image.storage<uint8_t>(), 600, uint8_t{0});
  for (int64_t y = 4; y < 9; ++y)
    for (int64_t x = 10; x < 22; ++x) image.storage<uint8_t>()[y * 30 + x] = 200;
  const float box[] = {10, 4, 22, 9};
  for (int mode = 0; mode < 4; ++mode) {
    Warp warp(20, 30);
    if (mode == 0) warp.flip_horizontal();
    if (mode == 1) warp.turn(1);
    if (mode == 2) warp.turn(3);
    if (mode >= 1) warp.flip_vertical();
    if (mode == 3) warp.crop(3, 5, 15, 20);
    const Tensor moved = warp.image(image, 0);
    const auto at = warp.box(box);
    ASSERT_TRUE(at);
    int64_t inside = 0;
    for (int64_t y = 0; y < moved.shape()[0]; ++y)
      for (int64_t x = 0; x < moved.shape()[1]; ++x) {
        const bool in = x >= (*at)[0] && x < (*at)[2] && y >= (*at)[1] && y < (*at)[3];
        EXPECT_EQ(moved.to_double(y * moved.shape()[1] + x), in ? 200 : 0);
        inside += in;
      }
    EXPECT_GT(inside, 0);
  }
  Warp away(20, 30);
  away.crop(0, 20, 20, 10);
  EXPECT_FALSE(away.box(box));  // a sixth of it is left
}

TEST(DataAugment, ColorsShiftAsInHsv) {
  Tensor image = Tensor::of<uint8_t>({1, 3, 3}, {255, 0, 0, 10, 200, 30, 77, 77, 77});
  Augment none;
  Draws draws(Purpose::sample, 1, 2, 3);
  EXPECT_TRUE(shift_colors(image, none, draws).identical(image));
  // A third of a turn takes red to green; found by asking for a hue that is drawn.
  Augment hue;
  hue.hue_sd = 1;
  Draws probe(Purpose::sample, 1, 2, 3);
  hue.hue_sd = 1.0 / 3 / probe.normal();
  Draws again(Purpose::sample, 1, 2, 3);
  const auto turned = shift_colors(image, hue, again).to_ints();
  EXPECT_EQ(turned, (std::vector<int64_t>{0, 255, 0, 30, 10, 200, 77, 77, 77}));
}

TEST(DataAugment, MasksOfFeaturesAreRows) {
  Sample sample;
  sample.input = Tensor(DType::f32, {50, 20});
  std::fill_n(sample.input.storage<float>(), 1000, 1.0F);
  Description about;
  about.input = InputKind::features;
  Augment augment;
  augment.time_masks = augment.frequency_masks = 1;
  augment.time_mask_max = 10;
  augment.frequency_mask_max = 5;
  Draws draws(Purpose::sample, 5, 0, 0);
  const Sample masked = augment_sample(sample, about, augment, true, draws);
  int64_t rows = 0, columns = 0;
  for (int64_t t = 0; t < 50; ++t) {
    bool all = true;
    for (int64_t f = 0; f < 20; ++f) all = all && masked.input.to_double(t * 20 + f) == 0;
    rows += all;
  }
  for (int64_t f = 0; f < 20; ++f) {
    bool all = true;
    for (int64_t t = 0; t < 50; ++t) all = all && masked.input.to_double(t * 20 + f) == 0;
    columns += all;
  }
  int64_t zeros = 0;
  for (const float value : masked.input.data<float>()) zeros += value == 0;
  EXPECT_EQ(zeros, rows * 20 + columns * 50 - rows * columns);
  EXPECT_GT(zeros, 0);
  EXPECT_EQ(sample.input.to_double(), 1);  // the original is untouched
}

TEST(DataAugment, DrawsFollowTheirDistributions) {
  double sum = 0, squares = 0, beta = 0, beta_squares = 0;
  constexpr int kCount = 20000;
  for (int i = 0; i < kCount; ++i) {
    Draws draws(Purpose::mixup, 3, 1, i);
    const double x = draws.normal(), b = draws.beta(0.4);
    sum += x;
    squares += x * x;
    beta += b;
    beta_squares += b * b;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.03);
  EXPECT_NEAR(squares / kCount, 1, 0.05);
  // Beta(a, a): mean 1/2, variance 1 / (4 (2a + 1)).
  EXPECT_NEAR(beta / kCount, 0.5, 0.01);
  EXPECT_NEAR(beta_squares / kCount - 0.25, 1 / (4 * 1.8), 0.01);
}

TEST(DataAugment, EvaluationTakesTheMiddle) {
  Sample sample;
  sample.input = ramp(6, 6);
  Description about;
  about.input = InputKind::image;
  Augment augment;
  augment.crop_height = augment.crop_width = 2;
  augment.flip_horizontal = true;
  Draws draws(Purpose::sample, 5, 0, 0);
  EXPECT_EQ(pixels(augment_sample(sample, about, augment, false, draws).input),
            (std::vector<int64_t>{14, 15, 20, 21}));
}

/// Of n numbers the mean lies within 5 / sqrt(n) of 0, the mean square within 5 sqrt(2 / n) of 1,
/// the mean fourth power within 5 sqrt(96 / n) of 3, and neighbours do not go together.
TEST(DataAugment, NoiseIsNormal) {
  constexpr int64_t n = 200001;
  std::vector<float> values(n, 0.5F);
  Draws draws(Purpose::sample, 3, 1, 2);
  draws.add_normal(values.data(), n, 2);
  double mean = 0, squares = 0, fourths = 0, together = 0, before = 0;
  for (const float value : values) {
    const double x = (static_cast<double>(value) - 0.5) / 2;
    mean += x / n;
    squares += x * x / n;
    fourths += x * x * x * x / n;
    together += x * before / n;
    before = x;
  }
  const double unit = 5 / std::sqrt(static_cast<double>(n));
  EXPECT_NEAR(mean, 0, unit);
  EXPECT_NEAR(squares, 1, unit * std::sqrt(2));
  EXPECT_NEAR(fourths, 3, unit * std::sqrt(96));
  EXPECT_NEAR(together, 0, unit);
}

}  // namespace
}  // namespace dais::data
