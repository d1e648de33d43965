#include "ops/scatter/scatter.h"

#include "ops/op_testing.h"

namespace dais {
namespace {

using Ints = std::vector<int64_t>;

TEST(Scatter, IndicesOutsideAreRefusedBeforeAnythingIsWritten) {
  const Tensor data = Tensor::of<float>({3}, {1, 2, 3});
  const Tensor update = Tensor::of<float>({1}, {9});
  for (int64_t index : {-4, 3})
    for (const char* type : {"ScatterElements", "Scatter"})
      EXPECT_THROW(run_onnx(type, 11, {data, Tensor::ints(Ints{index}), update}), Error);
  EXPECT_TRUE(run_onnx("Scatter", 9, {data, Tensor::ints(Ints{-1}), update})[0].identical(
      Tensor::of<float>({3}, {1, 2, 9})));
  const Tensor pair = Tensor::of<int64_t>({1, 1}, {3});
  EXPECT_THROW(run_onnx("ScatterND", 16, {data, pair, update}), Error);
  EXPECT_THROW(run_onnx("GatherND", 12, {data, pair}), Error);
  EXPECT_THROW(run_onnx("Gather", 13, {data, Tensor::ints(Ints{-4})}), Error);
}

TEST(Scatter, ReductionsKeepNaNAndWrapIntegers) {
  const float nan = std::nanf("");
  const Tensor y = run_onnx("ScatterElements", 18,
                            {Tensor::of<float>({2}, {nan, 1}), Tensor::ints(Ints{0, 1, 1}),
                             Tensor::of<float>({3}, {5, nan, 7})},
                            {{"reduction", std::string("max")}})[0];
  EXPECT_TRUE(std::isnan(y.data<float>()[0]));
  const Tensor wrapped = run_onnx("ScatterND", 16,
                                  {Tensor::of<int8_t>({1}, {127}), Tensor::of<int64_t>({1, 1}, {0}),
                                   Tensor::of<int8_t>({1}, {1})},
                                  {{"reduction", std::string("add")}})[0];
  EXPECT_EQ(wrapped.data<int8_t>()[0], -128);
}

TEST(Scatter, CacheEntriesStartWhereTheyAreTold) {
  const Tensor cache = Tensor::of<float>({2, 3, 1}, {0, 0, 0, 0, 0, 0});
  const Tensor update = Tensor::of<float>({2, 2, 1}, {1, 2, 3, 4});
  const Tensor places = Tensor::ints(Ints{1, 2});
  EXPECT_TRUE(
      run_onnx("TensorScatter", 24, {cache, update, places}, {{"mode", std::string("circular")}})[0]
          .identical(Tensor::of<float>({2, 3, 1}, {0, 1, 2, 4, 0, 3})));
  EXPECT_THROW(run_onnx("TensorScatter", 24, {cache, update, places}), Error);
}

}  // namespace
}  // namespace dais
