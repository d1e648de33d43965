#include "ops/grid_sample/grid_sample.h"

#include <limits>

#include "ops/op_testing.h"

namespace dais {
namespace {

TEST(GridSample, PlacesFarOutsideAndNaNReadNothingForeign) {
  const float far = std::numeric_limits<float>::max(), nan = std::nanf("");
  const Tensor image = Tensor::of<float>({1, 1, 1, 2}, {3, 5});
  const Tensor grid = Tensor::of<float>({1, 1, 4, 2}, {far, 0, -far, 0, nan, 0, HUGE_VALF, nan});
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (int64_t align : {0, 1}) {
        const Tensor y = run_onnx("GridSample", 20, {image, grid},
                                  {{"mode", std::string(mode)},
                                   {"padding_mode", std::string(padding)},
                                   {"align_corners", align}})[0];
        for (float value : y.data<float>()) {
          EXPECT_GE(value, 0) << mode << " " << padding;
          EXPECT_LE(value, 6) << mode << " " << padding;
        }
      }
}

TEST(GridSample, OldNamesOfModes) {
  const Tensor image = Tensor::of<float>({1, 1, 1, 2}, {3, 5});
  const Tensor grid = Tensor::of<float>({1, 1, 1, 2}, {0, 0});
  EXPECT_EQ(run_onnx("GridSample", 16, {image, grid}, {{"mode", std::string("bilinear")}})[0]
                .data<float>()[0],
            4);
  EXPECT_THROW(run_onnx("GridSample", 20, {image, grid}, {{"mode", std::string("bilinear")}}),
               Error);
}

}  // namespace
}  // namespace dais
