#include "ops/slice/slice.h"

#include "ops/op_testing.h"

namespace dais {
namespace {

using Ints = std::vector<int64_t>;

std::string sliced(const char* size, const char* start, const char* end, int64_t step = 1) {
  Graph graph;
  Value* x = graph.add_input(Type::tensor(DType::f32, Dims{Dim::parse(size)}), "x");
  Value* bounds[2];
  const char* texts[] = {start, end};
  for (int i = 0; i < 2; ++i) {
    bounds[i] = graph.add_input(Type::tensor(DType::i64, Dims{1}), {});
    bounds[i]->set_known(Dims{Dim::parse(texts[i])});
  }
  Value* axes = graph.add_constant(Tensor::ints(Ints{0}));
  Value* steps = graph.add_constant(Tensor::ints(Ints{step}));
  return graph.add(Slice{}, {x, bounds[0], bounds[1], axes, steps})->type.text();
}

TEST(Slice, SymbolicSizes) {
  EXPECT_EQ(sliced("n", "0", "9223372036854775807"), "f32[n]");
  EXPECT_EQ(sliced("n + 3", "1", "2147483647"), "f32[n + 2]");
  EXPECT_EQ(sliced("n + 3", "-1", "2147483647"), "f32[1]");
  EXPECT_EQ(sliced("n + 3", "0", "-1"), "f32[n + 2]");
  EXPECT_EQ(sliced("past + n", "past", "past + n"), "f32[n]");
  EXPECT_EQ(sliced("2*n", "0", "9223372036854775807", 2), "f32[n]");
  EXPECT_EQ(sliced("n", "-1", "-9223372036854775807", -1), "f32[n]");
  EXPECT_EQ(sliced("10", "7", "-9223372036854775807", -3), "f32[3]");
}

TEST(Slice, EveryPairOfBoundsAsPythonDoes) {
  // Reading forwards, the result must be that of clamped Python ranges.
  const Tensor x = Tensor::of<int64_t>({4}, {0, 1, 2, 3});
  for (int64_t start = -6; start <= 6; ++start)
    for (int64_t end = -6; end <= 6; ++end)
      for (int64_t step = 1; step <= 3; ++step) {
        const int64_t first = std::clamp<int64_t>(start < 0 ? start + 4 : start, 0, 4);
        const int64_t last = std::clamp<int64_t>(end < 0 ? end + 4 : end, 0, 4);
        Ints expected;
        for (int64_t i = first; i < last; i += step) expected.push_back(i);
        const Tensor y = run_onnx("Slice", 13,
                                  {x, Tensor::ints(Ints{start}), Tensor::ints(Ints{end}),
                                   Tensor::ints(Ints{0}), Tensor::ints(Ints{step})})[0];
        EXPECT_EQ(y.to_ints(), expected) << start << ":" << end << ":" << step;
      }
}

TEST(Slice, BackwardsAndEmpty) {
  const Tensor x = Tensor::of<int64_t>({4}, {0, 1, 2, 3});
  auto run = [&](const Tensor& from, int64_t start, int64_t end, int64_t step) {
    return run_onnx("Slice", 11,
                    {from, Tensor::ints(Ints{start}), Tensor::ints(Ints{end}),
                     Tensor::ints(Ints{0}), Tensor::ints(Ints{step})})[0]
        .to_ints();
  };
  EXPECT_EQ(run(x, -1, INT64_MIN, -1), (Ints{3, 2, 1, 0}));
  EXPECT_EQ(run(x, INT64_MAX, 0, -2), (Ints{3, 1}));
  EXPECT_EQ(run(x, 3, INT64_MIN, INT64_MIN), (Ints{3}));
  EXPECT_EQ(run(Tensor(DType::i64, {0}), -1, INT64_MIN, -1), Ints{});
  EXPECT_THROW(run(x, 0, 4, 0), Error);
}

TEST(Slice, AttributesOfOpset1) {
  const Tensor x = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_TRUE(
      run_onnx("Slice", 1, {x}, {{"starts", Ints{-2}}, {"ends", Ints{1000}}, {"axes", Ints{1}}})[0]
          .identical(Tensor::of<float>({2, 2}, {2, 3, 5, 6})));
  EXPECT_TRUE(
      run_onnx("Slice", 9, {x}, {{"starts", Ints{1, 0}}, {"ends", Ints{2, 1}}})[0].identical(
          Tensor::of<float>({1, 1}, {4})));
}

}  // namespace
}  // namespace dais
