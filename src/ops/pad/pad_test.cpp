#include "ops/pad/pad.h"

#include "ops/op_testing.h"

namespace dais {
namespace {

using Ints = std::vector<int64_t>;

Ints padded(const char* mode, int64_t before, int64_t after, int64_t size = 3) {
  Tensor x(DType::i64, {size});
  for (size_t i = 0; i < static_cast<size_t>(size); ++i)
    x.data<int64_t>()[i] = static_cast<int64_t>(i) + 1;
  return run_onnx("Pad", 19, {x, Tensor::ints(Ints{before, after})},
                  {{"mode", std::string(mode)}})[0]
      .to_ints();
}

TEST(Pad, GoesOnPeriodically) {
  EXPECT_EQ(padded("reflect", 5, 5), (Ints{2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(padded("wrap", 4, 4), (Ints{3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1}));
  EXPECT_EQ(padded("edge", 2, 1), (Ints{1, 1, 1, 2, 3, 3}));
}

TEST(Pad, RemovesFirst) {
  EXPECT_EQ(padded("constant", -2, 1), (Ints{3, 0}));
  EXPECT_EQ(padded("constant", -4, 3), (Ints{0, 0}));
  EXPECT_EQ(padded("reflect", -1, 2), (Ints{2, 3, 2, 3}));
  EXPECT_EQ(padded("wrap", -1, 2), (Ints{2, 3, 2, 3}));
  EXPECT_EQ(padded("edge", -3, 0), Ints{});
}

TEST(Pad, RefusesWhatCannotBe) {
  EXPECT_THROW(padded("edge", -4, 3), Error);
  EXPECT_THROW(padded("constant", -4, 0), Error);
  EXPECT_THROW(padded("reflect", 1, 0, 0), Error);
  EXPECT_THROW(padded("mirror", 1, 0), Error);
  EXPECT_THROW(padded("constant", INT64_MAX, 1), Error);
}

TEST(Pad, AttributesOfOldOpsets) {
  const Tensor x = Tensor::of<float>({1, 2}, {1, 2});
  const Tensor expected = Tensor::of<float>({1, 4}, {1, 2, 7, 7});
  EXPECT_TRUE(
      run_onnx("Pad", 1, {x}, {{"paddings", Ints{0, 0, 0, 2}}, {"value", 7.0f}})[0].identical(
          expected));
  EXPECT_TRUE(run_onnx("Pad", 2, {x}, {{"pads", Ints{0, 0, 0, 2}}, {"value", 7.0f}})[0].identical(
      expected));
}

}  // namespace
}  // namespace dais
