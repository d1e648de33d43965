#include "ops/resize/resize.h"
#include "runtime/row_test.h"

namespace dais {
namespace {

const RowTolerance kRounding{2e-6, 2e-6};

Tensor scales(std::initializer_list<float> values) {
  return Tensor::of<float>(Shape{std::ssize(values)}, values);
}

TEST(ResizeRows, FiltersAgreeWithTheReference) {
  for (const char* mode : {"linear", "cubic"})
    for (const char* coordinates :
         {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"}) {
      const Resize attrs{.mode = mode, .coordinate_transformation_mode = coordinates};
      const Tensor planes = sample<float>({2, 3, 9, 21}), cells = sample<float>({2, 9, 11, 19});
      EXPECT_GT(check_rows(attrs, {planes, {}, scales({1, 1, 2, 2})}, kRounding, {2}), 0);
      EXPECT_GT(check_rows(attrs, {planes, {}, scales({1, 1, 0.6F, 2.7F})}, kRounding, {2}), 0);
      EXPECT_GT(check_rows(attrs, {planes, {}, scales({1, 1, 1, 1.5F})}, kRounding, {2}), 0);
      EXPECT_GT(check_rows(attrs, {cells, {}, scales({1, 2, 2, 1})}, kRounding, {2}), 0);
      EXPECT_GT(check_rows(attrs, {cells, {}, scales({1, 0.4F, 1, 1})}, kRounding, {2}), 0);
      const Tensor sizes = Tensor::ints(std::vector<int64_t>{2, 3, 5, 40});
      EXPECT_GT(check_rows(attrs, {planes, {}, {}, sizes}, kRounding, {3}), 0);
    }
}

TEST(ResizeRows, WideFiltersAndInfinities) {
  const Resize smooth{.mode = "linear", .antialias = true};
  EXPECT_GT(check_rows(smooth, {sample<float>({1, 2, 30, 40}), {}, scales({1, 1, 0.2F, 0.3F})},
                       kRounding, {2}),
            0);
  Tensor x = sample<float>({1, 1, 4, 4});
  x.data<float>()[5] = INFINITY;
  const Resize corners{.mode = "linear", .coordinate_transformation_mode = "align_corners"};
  EXPECT_GT(check_rows(corners, {x, {}, scales({1, 1, 1.75F, 1.75F})}, kRounding, {2}), 0);
}

TEST(ResizeRows, NearestElements) {
  for (const char* rounding : {"round_prefer_floor", "floor", "ceil", "round_prefer_ceil"}) {
    const Resize attrs{.coordinate_transformation_mode = "asymmetric", .nearest_mode = rounding};
    EXPECT_GT(check_rows(attrs, {sample<float>({2, 3, 5, 7}), {}, scales({1, 1, 2, 2})}, {}, {2}),
              0);
    EXPECT_GT(check_rows(attrs, {sample<uint8_t>({2, 5, 7, 3}), {}, scales({1, 2, 3, 1})}, {}, {2}),
              0);
    EXPECT_GT(
        check_rows(attrs, {sample<int64_t>({1, 2, 8, 9}), {}, scales({1, 1, 0.5F, 0.7F})}, {}, {2}),
        0);
  }
}

}  // namespace
}  // namespace dais
