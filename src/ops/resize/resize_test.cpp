#include "ops/resize/resize.h"

#include <algorithm>

#include "ops/op_testing.h"

namespace dais {
namespace {

using Ints = std::vector<int64_t>;

TEST(Resize, OldOpsetsTakeTheNeighbourByDirection) {
  const Tensor x = Tensor::of<float>({1, 1, 1, 4}, {1, 2, 3, 4});
  const Tensor up = Tensor::of<float>({1, 1, 1, 8}, {1, 1, 2, 2, 3, 3, 4, 4});
  EXPECT_TRUE(
      run_onnx("Upsample", 1, {x},
               {{"height_scale", 1.0f}, {"width_scale", 2.0f}, {"mode", std::string("nearest")}})[0]
          .identical(up));
  EXPECT_TRUE(
      run_onnx("Upsample", 7, {x}, {{"scales", std::vector<float>{1, 1, 1, 2}}})[0].identical(up));
  EXPECT_TRUE(run_onnx("Upsample", 9, {x, Tensor::of<float>({4}, {1, 1, 1, 2})})[0].identical(up));
  EXPECT_TRUE(run_onnx("Resize", 10, {x, Tensor::of<float>({4}, {1, 1, 1, 0.6f})})[0].identical(
      Tensor::of<float>({1, 1, 1, 2}, {1, 3})));
}

TEST(Resize, EmptyScalesOfOpset11GiveWayToSizes) {
  const Tensor x = Tensor::of<float>({1, 1, 1, 2}, {0, 4});
  const Tensor none(DType::f32, {0});
  const Tensor y = run_onnx("Resize", 11, {x, none, none, Tensor::ints(Ints{1, 1, 1, 4})},
                            {{"mode", std::string("linear")}})[0];
  EXPECT_TRUE(y.identical(Tensor::of<float>({1, 1, 1, 4}, {0, 1, 3, 4})));
}

TEST(Resize, ScalesThatAreNotRepresentable) {
  // 7/3 as a float times 3 is 7, and thirds land on whole elements.
  const Tensor x = Tensor::of<float>({3}, {1, 2, 3});
  EXPECT_EQ(run_onnx("Resize", 13, {x, {}, Tensor::of<float>({1}, {7.0f / 3})})[0].shape(),
            (Shape{7}));
  const Tensor nine = Tensor::of<float>({9}, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_TRUE(run_onnx("Resize", 13, {nine, {}, Tensor::of<float>({1}, {1.0f / 3})},
                       {{"nearest_mode", std::string("floor")}})[0]
                  .identical(Tensor::of<float>({3}, {1, 4, 7})));
}

TEST(Resize, SymbolicSizes) {
  Graph graph;
  Value* x = graph.add_input(Type::tensor(DType::f32, Dims{1, 3, Dim::symbol("h"), 8}), "x");
  Value* scales = graph.add_constant(Tensor::of<float>({4}, {1, 1, 2, 0.5f}));
  EXPECT_EQ(graph.add(Resize{}, {x, nullptr, scales})->type.text(), "f32[1,3,2*h,4]");
  EXPECT_THROW(graph.add(Resize{.mode = "lanczos"}, {x, nullptr, scales}), Error);
}

TEST(Resize, IntegersStayInRange) {
  const Tensor x = Tensor::of<uint8_t>({4}, {0, 255, 255, 0});
  const Tensor y = run_onnx("Resize", 13, {x, {}, Tensor::of<float>({1}, {4})},
                            {{"mode", std::string("cubic")}})[0];
  EXPECT_EQ(*std::max_element(y.data<uint8_t>().begin(), y.data<uint8_t>().end()), 255);
  EXPECT_EQ(y.data<uint8_t>()[0], 0);
}

}  // namespace
}  // namespace dais
