#include "ops/generate/generate.h"

#include <gtest/gtest.h>

#include "ir/call.h"
#include "ops/shape/shape.h"

namespace dais {
namespace {

TEST(Generate, RangesOverSymbolicSizes) {
  Graph graph;
  Value* x = graph.add_input(Type::tensor(DType::f32, Dims{Dim::symbol("N"), 4}), "x");
  Value* size = graph.add(Size{}, {x});
  Value* zero = graph.add_constant(Tensor::scalar<int64_t>(0));
  Value* step = graph.add_constant(Tensor::scalar<int64_t>(2));
  Value* range = graph.add(Range{}, {zero, size, step});
  EXPECT_EQ(range->type, Type::tensor(DType::i64, Dims{Dim(2) * Dim::symbol("N")}));
}

TEST(Generate, RangesThatEndAtOnceOrNever) {
  auto range = [](float start, float limit, float delta) {
    Graph graph;
    Values in;
    std::vector<Datum> data;
    for (const float value : {start, limit, delta}) {
      data.emplace_back(Tensor::scalar(value));
      in.push_back(graph.add_input(Type::tensor(DType::f32, Dims{}), {}));
    }
    graph.outputs = {graph.add(Range{}, in)};
    return evaluate(graph, data)[0].tensor;
  };
  EXPECT_EQ(range(0, -1, 1).elements(), 0);
  EXPECT_TRUE(range(1, -1, -1).identical(Tensor::of<float>({2}, {1, 0})));
  EXPECT_THROW(range(0, 1, 0), Error);
  EXPECT_THROW(range(0, HUGE_VALF, 1), Error);
}

TEST(Generate, ShapesOfShapes) {
  Graph graph;
  Value* x = graph.add_input(Type::tensor(DType::f32, Dims{Dim::symbol("N"), 4, 5}), "x");
  Value* shape = graph.add(ShapeOf{.start = -3, .end = -1}, {x});
  Value* filled = graph.add(ConstantOfShape{.value = Tensor::of<int64_t>({1}, {7})}, {shape});
  EXPECT_EQ(filled->type, Type::tensor(DType::i64, Dims{Dim::symbol("N"), 4}));
}

TEST(Generate, OneHotOfIndicesOutOfRange) {
  Graph graph;
  const Tensor indices = Tensor::of<int64_t>({3}, {-1, 0, 5});
  const Tensor values = Tensor::of<int32_t>({2}, {-1, 1});
  graph.outputs = {graph.add(OneHot{.axis = 0}, {graph.add_input(Type::of(indices), "i"),
                                                 graph.add_constant(Tensor::scalar<int64_t>(2)),
                                                 graph.add_input(Type::of(values), "v")})};
  const std::vector<Datum> data{indices, values};
  EXPECT_TRUE(evaluate(graph, data)[0].tensor.identical(
      Tensor::of<int32_t>({2, 3}, {-1, 1, -1, 1, -1, -1})));
}

}  // namespace
}  // namespace dais
