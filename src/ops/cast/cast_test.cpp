#include "ops/cast/cast.h"

#include <gtest/gtest.h>

#include <limits>

#include "ir/call.h"

namespace dais {
namespace {

Tensor cast(const Tensor& x, Cast attrs) {
  Graph graph;
  graph.outputs = {graph.add(std::move(attrs), {graph.add_input(Type::of(x), "x")})};
  const Datum input(x);
  return evaluate(graph, std::span(&input, 1))[0].tensor;
}

TEST(Cast, FloatsOutsideAnIntegerTypeGiveItsLimits) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::of<float>({6}, {300, std::nanf(""), inf, -inf, 50.9f, -50.9f});
  EXPECT_TRUE(
      cast(x, {.to = DType::i8}).identical(Tensor::of<int8_t>({6}, {127, 0, 127, -128, 50, -50})));
  const auto wide = cast(x, {.to = DType::i64});
  EXPECT_EQ(wide.data<int64_t>()[2], std::numeric_limits<int64_t>::max());
  EXPECT_EQ(wide.data<int64_t>()[3], std::numeric_limits<int64_t>::min());
}

TEST(Cast, IntegersWrapAndKeepEveryBit) {
  const Tensor x = Tensor::of<int64_t>({3}, {(int64_t{1} << 53) + 1, 257, -1});
  EXPECT_TRUE(cast(x, {.to = DType::u8}).identical(Tensor::of<uint8_t>({3}, {1, 1, 255})));
  EXPECT_TRUE(cast(x, {.to = DType::boolean}).identical(Tensor::of<bool>({3}, {true, true, true})));
  EXPECT_TRUE(cast(cast(x, {.to = DType::string}), {.to = DType::i64}).identical(x));
}

TEST(Cast, NumbersAndText) {
  const Tensor x = Tensor::of<float>({5}, {0.1f, 3, -1e-7f, HUGE_VALF, 1e20f});
  const Tensor text = cast(x, {.to = DType::string});
  EXPECT_TRUE(
      text.identical(Tensor::of<std::string>({5}, {"0.1", "3.0", "-1e-07", "INF", "1e+20"})));
  EXPECT_TRUE(cast(text, {.to = DType::f32}).identical(x));
  const Tensor more = Tensor::of<std::string>({4}, {" +inf", "1E3", "nan", "100.5"});
  const Tensor numbers = cast(more, {.to = DType::f64});
  EXPECT_EQ(numbers.data<double>()[0], HUGE_VAL);
  EXPECT_EQ(numbers.data<double>()[1], 1000);
  EXPECT_TRUE(std::isnan(numbers.data<double>()[2]));
  EXPECT_EQ(cast(more, {.to = DType::i32}).data<int32_t>()[3], 100);
  EXPECT_THROW(cast(Tensor::of<std::string>({1}, {"3 apples"}), {.to = DType::f32}), Error);
}

TEST(Cast, BitsKeepTheirWidth) {
  Graph graph;
  Value* x = graph.add_input(Type::tensor(DType::f32, Dims{2}), "x");
  EXPECT_THROW(graph.add(BitCast{.to = DType::i64}, {x}), Error);
  graph.outputs = {graph.add(BitCast{.to = DType::u32}, {x})};
  const Datum input(Tensor::of<float>({2}, {1, -0.0f}));
  EXPECT_TRUE(evaluate(graph, std::span(&input, 1))[0].tensor.identical(
      Tensor::of<uint32_t>({2}, {0x3f800000, 0x80000000})));
}

}  // namespace
}  // namespace dais
