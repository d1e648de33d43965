#include <algorithm>

#include "ops/grid_sample/grid_sample.h"
#include "runtime/row_test.h"

namespace dais {
namespace {

const RowTolerance kRounding{1e-5, 1e-5};

/// Places inside the image, on its edge and far outside.
Tensor places(const Shape& shape) {
  Tensor grid = sample<float>(shape);
  for (float& place : grid.data<float>()) place *= 1.7F;
  return grid;
}

TEST(GridSampleRows, EveryModeAgreesWithTheReference) {
  for (const char* mode : {"linear", "nearest", "cubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (const bool corners : {false, true}) {
        const GridSample attrs{.mode = mode, .padding_mode = padding, .align_corners = corners};
        EXPECT_GT(
            check_rows(attrs, {sample<float>({2, 3, 9, 7}), places({2, 13, 11, 2})}, kRounding), 0);
        EXPECT_GT(check_rows(attrs, {sample<float>({1, 5, 17}), places({1, 70, 1})}, kRounding), 0);
        EXPECT_GT(
            check_rows(attrs, {sample<float>({1, 2, 4, 5, 6}), places({1, 3, 4, 9, 3})}, kRounding),
            0);
      }
}

TEST(GridSampleRows, WhatLiesOutsideDoesNotTouchInfinities) {
  Tensor image = sample<float>({1, 1, 3, 3});
  image.data<float>()[0] = INFINITY;
  Tensor grid(DType::f32, {1, 1, 2, 2});
  const float far[] = {-7, -7, NAN, 0.9F};
  std::copy(std::begin(far), std::end(far), grid.data<float>().begin());
  EXPECT_GT(check_rows(GridSample{}, {image, grid}, kRounding), 0);
}

}  // namespace
}  // namespace dais
