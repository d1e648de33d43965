#include "ir/widen.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/call.h"
#include "ops/cast/cast.h"
#include "ops/elementwise/elementwise.h"
#include "ops/quantize/quantize.h"

namespace dais {
namespace {

TEST(Widen, ComputesInDouble) {
  Graph graph;
  Value* x = graph.add_input(Type::tensor(DType::f32, Dims{}), "x");
  // In f32 the sum is 2^24 again.
  Value* sum = graph.add(Add{}, {x, graph.add_constant(Tensor::scalar(1.0F))});
  Value* narrow = graph.add(Cast{.to = DType::f16}, {sum});
  graph.outputs = {sum, narrow};
  const auto wide = widened(graph);
  wide->verify();
  const std::vector<Datum> inputs{widened(Tensor::scalar(16777216.0F))};
  const auto outputs = evaluate(*wide, inputs);
  for (const Datum& output : outputs) {
    EXPECT_EQ(output.tensor.dtype(), DType::f64);
    EXPECT_EQ(output.tensor.to_double(), 16777217.0);
  }
}

TEST(Widen, QuantisedTypesStay) {
  Graph graph;
  Value* x = graph.add_input(Type::tensor(DType::f32, Dims{3}), "x");
  const Node& node = graph.add_node(DynamicQuantizeLinear{}, {x}, 3);
  graph.outputs = node.outs;
  const auto wide = widened(graph);
  EXPECT_EQ(wide->outputs[0]->type.dtype, DType::u8);
  EXPECT_EQ(wide->outputs[1]->type.dtype, DType::f64);
  Tensor values(DType::f32, Shape{3});
  const float numbers[] = {-1, 0, 254};
  std::copy_n(numbers, 3, values.data<float>().data());
  const std::vector<Datum> inputs{widened(values)};
  const auto outputs = evaluate(*wide, inputs);
  EXPECT_EQ(outputs[0].tensor.to_ints(), (std::vector<int64_t>{0, 1, 255}));
  EXPECT_EQ(outputs[1].tensor.to_double(), 1.0);
}

}  // namespace
}  // namespace dais
