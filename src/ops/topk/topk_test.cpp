#include "ops/topk/topk.h"

#include "ops/op_testing.h"

namespace dais {
namespace {

using Ints = std::vector<int64_t>;

TEST(TopK, TiesKeepTheirOrderAndNaNIsLargest) {
  const Tensor x = Tensor::of<float>({5}, {1, 3, std::nanf(""), 3, 2});
  const auto largest = run_onnx("TopK", 11, {x, Tensor::ints(Ints{3})}, {}, 2);
  EXPECT_EQ(largest[1].to_ints(), (Ints{2, 1, 3}));
  const auto least = run_onnx("TopK", 11, {x, Tensor::ints(Ints{5})}, {{"largest", int64_t{0}}}, 2);
  EXPECT_EQ(least[1].to_ints(), (Ints{0, 4, 1, 3, 2}));
}

TEST(TopK, CountAsAttributeBeforeOpset10) {
  const Tensor x = Tensor::of<float>({2, 2}, {1, 2, 4, 3});
  const auto y = run_onnx("TopK", 1, {x}, {{"k", int64_t{1}}, {"axis", int64_t{0}}}, 2);
  EXPECT_TRUE(y[0].identical(Tensor::of<float>({1, 2}, {4, 3})));
  EXPECT_THROW(run_onnx("TopK", 10, {x, Tensor::ints(Ints{3})}, {}, 2), Error);
}

TEST(Unique, RowsInOrderOfAppearance) {
  const Tensor x = Tensor::of<int32_t>({3, 2}, {2, 1, 0, 5, 2, 1});
  const auto y = run_onnx("Unique", 11, {x}, {{"axis", int64_t{0}}, {"sorted", int64_t{0}}}, 4);
  EXPECT_TRUE(y[0].identical(Tensor::of<int32_t>({2, 2}, {2, 1, 0, 5})));
  EXPECT_EQ(y[1].to_ints(), (Ints{0, 1}));
  EXPECT_EQ(y[2].to_ints(), (Ints{0, 1, 0}));
  EXPECT_EQ(y[3].to_ints(), (Ints{2, 1}));
}

TEST(NonZero, ScalarsHaveNoCoordinates) {
  EXPECT_EQ(run_onnx("NonZero", 13, {Tensor::scalar<float>(3)})[0].shape(), (Shape{0, 1}));
  EXPECT_EQ(run_onnx("NonZero", 13, {Tensor(DType::f32, {2, 0})})[0].shape(), (Shape{2, 0}));
}

}  // namespace
}  // namespace dais
