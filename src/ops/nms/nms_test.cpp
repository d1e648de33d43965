#include "ops/nms/nms.h"

#include "ops/op_testing.h"

namespace dais {
namespace {

using Ints = std::vector<int64_t>;

TEST(NonMaxSuppression, NothingIsAskedForByDefault) {
  const Tensor boxes = Tensor::of<float>({1, 1, 4}, {0, 0, 1, 1});
  const Tensor scores = Tensor::of<float>({1, 1, 1}, {0.5f});
  EXPECT_EQ(run_onnx("NonMaxSuppression", 11, {boxes, scores})[0].shape(), (Shape{0, 3}));
  EXPECT_THROW(run_onnx("NonMaxSuppression", 11, {boxes, Tensor(DType::f32, {1, 1, 2})}), Error);
}

TEST(NonMaxSuppression, EqualScoresKeepTheirOrder) {
  const Tensor boxes = Tensor::of<float>({1, 3, 4}, {0, 0, 1, 1, 0, 5, 1, 6, 0, 0, 1, 1});
  const Tensor scores = Tensor::of<float>({1, 1, 3}, {0.5f, 0.5f, 0.5f});
  EXPECT_EQ(run_onnx("NonMaxSuppression", 10, {boxes, scores, Tensor::ints(Ints{9})})[0].to_ints(),
            (Ints{0, 0, 0, 0, 0, 1}));
}

TEST(RoiAlign, BoxesAreCheckedBeforeSampling) {
  const Tensor features(DType::f32, {1, 1, 2, 2});
  const Tensor box = Tensor::of<float>({1, 4}, {0, 0, 1e30f, 1});
  EXPECT_THROW(run_onnx("RoiAlign", 16, {features, box, Tensor::ints(Ints{0})}), Error);
  EXPECT_THROW(run_onnx("RoiAlign", 10,
                        {features, Tensor::of<float>({1, 4}, {0, 0, 1, 1}), Tensor::ints(Ints{1})}),
               Error);
}

TEST(MaxRoiPool, RoundsCornersAndSplitsBins) {
  const Tensor features = Tensor::of<float>({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor roi = Tensor::of<float>({1, 5}, {0, 0.4f, 0, 2.6f, 0});
  EXPECT_TRUE(
      run_onnx("MaxRoiPool", 1, {features, roi}, {{"pooled_shape", Ints{1, 2}}})[0].identical(
          Tensor::of<float>({1, 1, 1, 2}, {2, 4})));
}

TEST(MaxUnpool, IndicesOutsideAreRefused) {
  const Tensor x = Tensor::of<float>({1, 1, 1}, {3});
  for (int64_t index : {-1, 2})
    EXPECT_THROW(run_onnx("MaxUnpool", 11, {x, Tensor::of<int64_t>({1, 1, 1}, {index})},
                          {{"kernel_shape", Ints{2}}}),
                 Error);
}

}  // namespace
}  // namespace dais
