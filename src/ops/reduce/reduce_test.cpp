#include "ops/reduce/reduce.h"

#include <gtest/gtest.h>

#include <limits>

#include "ir/call.h"

namespace dais {
namespace {

template <typename Struct>
Tensor run(Struct attrs, const Tensor& x, std::vector<int64_t> axes = {}) {
  Graph graph;
  Values in{graph.add_input(Type::of(x), "x")};
  if (!axes.empty()) in.push_back(graph.add_constant(Tensor::ints(axes)));
  graph.outputs = {graph.add(attrs, in)};
  const Datum input(x);
  auto y = evaluate(graph, std::span(&input, 1))[0].tensor;
  EXPECT_EQ(graph.outputs[0]->type, Type::of(y));
  return y;
}

TEST(Reduce, AxesThatAreNotNeighbours) {
  const Tensor x = Tensor::of<int32_t>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_TRUE(
      run(ReduceSum{.keepdims = false}, x, {0, -1}).identical(Tensor::of<int32_t>({2}, {14, 22})));
  EXPECT_TRUE(run(ReduceProd{}, x).identical(Tensor::of<int32_t>({1, 1, 1}, {40320})));
}

TEST(Reduce, NothingToReduceGivesTheNeutralValue) {
  const Tensor x(DType::i8, {3, 0});
  EXPECT_TRUE(run(ReduceMax{.keepdims = false}, x, {1})
                  .identical(Tensor::of<int8_t>({3}, {-128, -128, -128})));
  EXPECT_TRUE(run(ReduceMin{.keepdims = false}, Tensor(DType::u16, {0}))
                  .identical(Tensor::of<uint16_t>({}, {65535})));
  EXPECT_TRUE(std::isnan(run(ReduceMean{}, Tensor(DType::f32, {0})).data<float>()[0]));
  EXPECT_EQ(run(ReduceLogSumExp{}, Tensor(DType::f32, {0})).data<float>()[0], -HUGE_VALF);
}

TEST(Reduce, NoAxesMayMeanNone) {
  const Tensor x = Tensor::of<float>({2}, {3, -4});
  EXPECT_TRUE(run(ReduceSumSquare{.noop_with_empty_axes = true}, x)
                  .identical(Tensor::of<float>({2}, {9, 16})));
  EXPECT_TRUE(run(ReduceL1{}, Tensor::scalar<float>(-2)).identical(Tensor::scalar<float>(2)));
}

TEST(Reduce, LargeExponentsDoNotOverflow) {
  const Tensor x = Tensor::of<float>({2}, {1000, 1000});
  EXPECT_FLOAT_EQ(run(ReduceLogSumExp{}, x).data<float>()[0], 1000 + std::log(2.0f));
  const Tensor infinite = Tensor::of<float>({2}, {-HUGE_VALF, HUGE_VALF});
  EXPECT_EQ(run(ReduceLogSumExp{}, infinite).data<float>()[0], HUGE_VALF);
}

TEST(Reduce, ArgMaxOfEqualAndMissingElements) {
  const Tensor x = Tensor::of<float>({4}, {1, 3, 3, 2});
  EXPECT_EQ(run(ArgMax{}, x).data<int64_t>()[0], 1);
  EXPECT_EQ(run(ArgMax{.select_last_index = true}, x).data<int64_t>()[0], 2);
  EXPECT_EQ(run(ArgMin{}, Tensor::of<float>({3}, {1, std::nanf(""), 0})).data<int64_t>()[0], 1);
  EXPECT_THROW(run(ArgMax{}, Tensor(DType::f32, {0})), Error);
}

TEST(Reduce, RunningSumsBothWays) {
  Graph graph;
  const Tensor x = Tensor::of<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  Value* axis = graph.add_constant(Tensor::scalar<int64_t>(-1));
  graph.outputs = {graph.add(CumSum{.exclusive = true, .reverse = true},
                             {graph.add_input(Type::of(x), "x"), axis})};
  const Datum input(x);
  EXPECT_TRUE(evaluate(graph, std::span(&input, 1))[0].tensor.identical(
      Tensor::of<int32_t>({2, 3}, {5, 3, 0, 11, 6, 0})));
}

}  // namespace
}  // namespace dais
