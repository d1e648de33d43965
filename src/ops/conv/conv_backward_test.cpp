#include "ops/conv/conv.h"
#include "runtime/row_test.h"

namespace dais {
namespace {

/// Rows of both gradients for a convolution of x with weights of shape w.
void check(Conv attrs, const Shape& x, const Shape& w, const Shape& dy) {
  attrs.kernel_shape.assign(w.begin() + 2, w.end());
  const RowTolerance tolerance{.relative = 1e-5, .absolute = 2e-4};
  const Tensor slopes = sample<float>(dy, 1, 1), weights = sample<float>(w, 1, 2),
               values = sample<float>(x, 1, 3);
  EXPECT_GT(check_rows(same_window<ConvBackwardData>(attrs),
                       {slopes, weights, Tensor::ints(x.dims())}, tolerance, {2}),
            0);
  EXPECT_GT(check_rows(same_window<ConvBackwardWeights>(attrs), {values, slopes}, tolerance), 0);
}

TEST(ConvBackwardRows, AgreeInBothLayouts) {
  for (const bool last : {false, true}) {
    const auto shape = [&](int64_t channels, int64_t height, int64_t width) {
      return last ? Shape{2, height, width, channels} : Shape{2, channels, height, width};
    };
    Conv same{.pads = {1, 1, 1, 1}, .channels_last = last};
    check(same, shape(16, 9, 7), {32, 16, 3, 3}, shape(32, 9, 7));
    Conv strided{.pads = {1, 1, 1, 1}, .strides = {2, 2}, .channels_last = last};
    check(strided, shape(3, 10, 8), {16, 3, 3, 3}, shape(16, 5, 4));
    check({.channels_last = last}, shape(16, 5, 5), {24, 16, 1, 1}, shape(24, 5, 5));
    check({.strides = {2, 2}, .channels_last = last}, shape(16, 6, 6), {24, 16, 1, 1},
          shape(24, 3, 3));
    Conv grouped{.dilations = {2, 1}, .group = 2, .channels_last = last};
    check(grouped, shape(16, 9, 7), {32, 8, 3, 3}, shape(32, 5, 5));
  }
}

TEST(ConvBackwardRows, AgreeOnLines) {
  check({.pads = {2, 2}, .strides = {2}}, {3, 8, 21}, {16, 8, 5}, {3, 16, 11});
}

}  // namespace
}  // namespace dais
