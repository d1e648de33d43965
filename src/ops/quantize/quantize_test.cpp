#include "ops/quantize/quantize.h"

#include <gtest/gtest.h>

#include "ir/call.h"

namespace dais {
namespace {

template <typename Struct>
std::vector<Datum> run(Struct attrs, std::vector<Tensor> inputs, size_t outputs = 1) {
  Graph graph;
  Values values;
  std::vector<Datum> data;
  for (const auto& input : inputs) {
    values.push_back(graph.add_input(Type::of(input), {}));
    data.emplace_back(input);
  }
  graph.outputs = graph.add_node(std::move(attrs), values, outputs).outs;
  return evaluate(graph, data);
}

TEST(Quantize, RoundsHalvesToEvenAndSaturates) {
  const Tensor zero = Tensor::scalar<int8_t>(0), scale = Tensor::scalar<float>(0.5f);
  const Tensor x = Tensor::of<float>({7}, {0.25f, 0.75f, 1.25f, -0.75f, -64.5f, -64, 64});
  EXPECT_TRUE(run(QuantizeLinear{}, {x, scale, zero})[0].tensor.identical(
      Tensor::of<int8_t>({7}, {0, 2, 2, -2, -128, -128, 127})));
}

TEST(Quantize, ARaggedLastBlock) {
  const Tensor x = Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor scale = Tensor::of<float>({2, 2}, {1, 2, 5, 3});
  const Tensor zero = Tensor::of<uint8_t>({2, 2}, {0, 1, 2, 3});
  const Tensor y = run(QuantizeLinear{.axis = 0, .block_size = 2}, {x, scale, zero})[0].tensor;
  EXPECT_TRUE(y.identical(Tensor::of<uint8_t>({3, 2}, {1, 2, 3, 3, 3, 5})));
  EXPECT_TRUE(
      run(DequantizeLinear{.axis = 0, .block_size = 2}, {y, scale, zero})[0].tensor.identical(
          Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6})));
  EXPECT_THROW(run(QuantizeLinear{.axis = 0, .block_size = 1}, {x, scale, zero}), Error);
  EXPECT_THROW(run(QuantizeLinear{.axis = 0}, {x, Tensor::of<float>({2}, {1, 1})}), Error);
}

TEST(Quantize, DynamicRangeHoldsZero) {
  auto out = run(DynamicQuantizeLinear{}, {Tensor::of<float>({3}, {-127, 128, 0.5f})}, 3);
  EXPECT_TRUE(out[0].tensor.identical(Tensor::of<uint8_t>({3}, {0, 255, 127})));
  EXPECT_TRUE(out[1].tensor.identical(Tensor::scalar<float>(1)));
  EXPECT_TRUE(out[2].tensor.identical(Tensor::scalar<uint8_t>(127)));
  out = run(DynamicQuantizeLinear{}, {Tensor::of<float>({2}, {0, 0})}, 3);
  EXPECT_TRUE(out[0].tensor.identical(Tensor::of<uint8_t>({2}, {0, 0})));
}

}  // namespace
}  // namespace dais
