#include "ops/elementwise/elementwise.h"

#include <gtest/gtest.h>

#include <limits>

#include "ir/call.h"

namespace dais {
namespace {

template <typename Struct>
Tensor run(Struct attrs, std::vector<Tensor> inputs) {
  Graph graph;
  Values values;
  std::vector<Datum> data;
  for (auto& input : inputs) {
    values.push_back(graph.add_input(Type::of(input), {}));
    data.emplace_back(input);
  }
  graph.outputs = {graph.add(std::move(attrs), values)};
  graph.verify();
  auto out = evaluate(graph, data)[0].tensor;
  EXPECT_EQ(graph.outputs[0]->type, Type::of(out));
  return out;
}

TEST(Elementwise, BroadcastsOverBothOperands) {
  const Tensor y = run(Sub{}, {Tensor::of<int32_t>({2, 1, 2}, {1, 2, 3, 4}),
                               Tensor::of<int32_t>({3, 1}, {10, 20, 30})});
  EXPECT_TRUE(y.identical(
      Tensor::of<int32_t>({2, 3, 2}, {-9, -8, -19, -18, -29, -28, -7, -6, -17, -16, -27, -26})));
}

TEST(Elementwise, EmptyOperandsGiveEmptyResults) {
  const Tensor y = run(Mul{}, {Tensor(DType::f32, {2, 0}), Tensor::of<float>({1}, {3})});
  EXPECT_EQ(y.shape(), (Shape{2, 0}));
}

TEST(Elementwise, IntegerDivisionTruncatesAndNeverTraps) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  const Tensor y = run(Div{}, {Tensor::of<int64_t>({5}, {7, -7, 5, least, least}),
                               Tensor::of<int64_t>({5}, {-2, 2, 0, -1, 2})});
  EXPECT_TRUE(y.identical(Tensor::of<int64_t>({5}, {-3, -3, 0, least, least / 2})));
  const Tensor rest =
      run(Mod{}, {Tensor::of<int32_t>({3}, {-7, 7, 5}), Tensor::of<int32_t>({3}, {3, -3, 0})});
  EXPECT_TRUE(rest.identical(Tensor::of<int32_t>({3}, {2, -2, 0})));
}

TEST(Elementwise, SmallIntegersWrap) {
  const Tensor y = run(Add{}, {Tensor::of<int8_t>({2}, {127, -128}), Tensor::of<int8_t>({}, {1})});
  EXPECT_TRUE(y.identical(Tensor::of<int8_t>({2}, {-128, -127})));
}

TEST(Elementwise, MinAndMaxKeepNaN) {
  const float nan = std::nanf("");
  const Tensor y = run(Max{}, {Tensor::of<float>({3}, {nan, 1, 2}),
                               Tensor::of<float>({3}, {0, nan, 3}), Tensor::of<float>({}, {1})});
  EXPECT_TRUE(std::isnan(y.data<float>()[0]));
  EXPECT_TRUE(std::isnan(y.data<float>()[1]));
  EXPECT_EQ(y.data<float>()[2], 3);
}

TEST(Elementwise, MeanOfHalvesDoesNotOverflow) {
  const Tensor x = Tensor::of<Float16>({1}, {Float16(60000.0f)});
  EXPECT_TRUE(run(Mean{}, {x, x, x}).identical(x));
}

TEST(Elementwise, PowerOfIntegersByFloatsSaturates) {
  const Tensor y =
      run(Pow{}, {Tensor::of<int32_t>({3}, {10, 2, 0}), Tensor::of<float>({3}, {20, 0.5f, -1})});
  constexpr int32_t most = std::numeric_limits<int32_t>::max();
  EXPECT_TRUE(y.identical(Tensor::of<int32_t>({3}, {most, 1, most})));
}

TEST(Elementwise, ShapeArithmeticStaysSymbolic) {
  Graph graph;
  Value* shape = graph.add_input(Type::tensor(DType::i64, Dims{2}), "shape");
  shape->set_known(Dims{Dim::symbol("N"), 6});
  Value* half = graph.add(Div{}, {shape, graph.add_constant(Tensor::scalar<int64_t>(2))});
  Value* more = graph.add(Add{}, {half, half});
  ASSERT_TRUE(more->known());
  EXPECT_EQ((*more->known())[0], Dim(2) * floordiv(Dim::symbol("N"), 2));
  EXPECT_TRUE((*more->known())[1].is(6));
}

TEST(Elementwise, ScalarCallsCarryParameters) {
  Graph graph;
  Value* x = graph.add_input(Type::tensor(DType::f32, Dims{2}), "x");
  const auto call =
      scalar_call(*graph.add(HardSigmoid{.alpha = 0.5f, .beta = 0.25f}, {x})->producer());
  ASSERT_TRUE(call);
  EXPECT_EQ(call->function, Scalar::hard_sigmoid);
  EXPECT_EQ(call->parameters, (std::array<double, 2>{0.5, 0.25}));
  const auto gelu = scalar_call(*graph.add(Gelu{.approximate = "tanh"}, {x})->producer());
  EXPECT_EQ(gelu->function, Scalar::gelu_tanh);
}

TEST(Elementwise, MixedOperandTypesAreRefused) {
  Graph graph;
  Value* x = graph.add_input(Type::tensor(DType::f32, Dims{2}), "x");
  Value* n = graph.add_input(Type::tensor(DType::i64, Dims{2}), "n");
  EXPECT_THROW(graph.add(Add{}, {x, n}), Error);
  EXPECT_THROW(graph.add(BitShift{.direction = "UP"}, {n, n}), Error);
  EXPECT_THROW(add_activation(graph, "Rleu", {}, x), Error);
}

}  // namespace
}  // namespace dais
