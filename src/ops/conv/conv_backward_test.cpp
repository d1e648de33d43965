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

/// A convolution and its gradients in bf16: sums in f32, rounded once, are one unit of bf16 apart
/// where a sum lies between two.
TEST(HalfConvRows, AgreeForWindowsOfEveryKind) {
  if (cpu::machine_isa() < Isa::amx) GTEST_SKIP() << "needs the tile unit";
  struct Case {
    Conv conv;
    Shape x, w, y;
  };
  const Case cases[] = {
      {{.pads = {1, 1, 1, 1}}, {2, 9, 7, 16}, {33, 16, 3, 3}, {2, 9, 7, 33}},
      {{.pads = {1, 1, 1, 1}, .strides = {2, 2}}, {2, 10, 8, 40}, {16, 40, 3, 3}, {2, 5, 4, 16}},
      {{.pads = {2, 3, 1, 2}, .strides = {2, 1}}, {3, 11, 9, 3}, {20, 3, 5, 6}, {3, 5, 9, 20}},
      {{.pads = {20, 5, 20, 5}, .strides = {2, 2}}, {1, 45, 30, 1}, {8, 1, 41, 11}, {1, 23, 15, 8}},
      {{}, {2, 5, 5, 32}, {64, 32, 1, 1}, {2, 5, 5, 64}},
      {{.strides = {2, 2}}, {2, 6, 6, 24}, {32, 24, 1, 1}, {2, 3, 3, 32}},
      {{.dilations = {2, 1}, .pads = {0, 1, 0, 1}}, {1, 9, 7, 35}, {4, 35, 3, 3}, {1, 5, 7, 4}},
      {{.dilations = {1, 2}}, {1, 6, 9, 5}, {4, 5, 2, 3}, {1, 5, 5, 4}},
  };
  const RowTolerance tolerance{.relative = 0x1p-8, .absolute = 1e-4};
  for (Case c : cases) {
    c.conv.kernel_shape = {c.w[2], c.w[3]};
    c.conv.channels_last = true;
    const Tensor x = in_half(sample<float>(c.x, 1, 3)), w = in_half(sample<float>(c.w, 1, 2)),
                 dy = in_half(sample<float>(c.y, 1, 1)),
                 bias = in_half(sample<float>({c.w[0]}, 1, 4));
    EXPECT_GT(check_rows(c.conv, {x, w, bias}, tolerance), 0);
    EXPECT_GT(check_rows(same_window<ConvBackwardData>(c.conv), {dy, w, Tensor::ints(c.x.dims())},
                         tolerance, {2}),
              0);
    EXPECT_GT(check_rows(same_window<ConvBackwardWeights>(c.conv), {x, dy}, tolerance), 0);
  }
}

TEST(ConvBackwardRows, AgreeOnLines) {
  check({.pads = {2, 2}, .strides = {2}}, {3, 8, 21}, {16, 8, 5}, {3, 16, 11});
}

}  // namespace
}  // namespace dais
