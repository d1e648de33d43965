#include "runtime/step_cost.h"

#include <gtest/gtest.h>

#include "backends/cpu/isa.h"
#include "ops/elementwise/elementwise.h"
#include "ops/fused/fused.h"
#include "ops/gather/gather.h"
#include "ops/matmul/matmul.h"

namespace dais {
namespace {

Type floats(Dims dims) { return Type::tensor(DType::f32, std::move(dims)); }

StepCost cost(const Value* value, std::vector<Type> in) { return cost_of(*value->producer(), in); }

TEST(StepCost, UsesTheSizesThatAStepMet) {
  Graph graph;
  Value* x = graph.add_input(floats({Dim::symbol("N"), 8}), "x");
  Value* w = graph.add_constant(Tensor(DType::f32, {8, 5}));
  const StepCost product = cost(graph.add(MatMul{}, {x, w}), {floats({3, 8}), floats({8, 5})});
  EXPECT_DOUBLE_EQ(product.flops, 2 * 3 * 8 * 5);
  EXPECT_EQ(product.dtype, DType::f32);
}

TEST(StepCost, FusedBodiesCountAtTheirSizes) {
  auto body = std::make_unique<Graph>();
  Value* inner = body->add_input(floats({Dim::symbol("N"), 8}), "x");
  Value* w = body->add_constant(Tensor(DType::f32, {8, 5}));
  body->outputs = {body->add(Relu{}, {body->add(MatMul{}, {inner, w})})};
  Graph graph;
  Value* x = graph.add_input(floats({Dim::symbol("N"), 8}), "x");
  std::vector<std::unique_ptr<Graph>> regions;
  regions.push_back(std::move(body));
  const Node& fused =
      graph.add_node(Fused::op, Attrs::of(Fused{}), {x}, 1, "fused", std::move(regions));
  EXPECT_DOUBLE_EQ(cost_of(fused, std::vector<Type>{floats({4, 8})}).flops, 2 * 4 * 8 * 5);
}

TEST(StepCost, BytesOfIntegerProductsAreTheirType) {
  Graph graph;
  Value* a = graph.add_input(Type::tensor(DType::u8, Dims{4, 6}), "a");
  Value* b = graph.add_constant(Tensor(DType::i8, {6, 3}));
  const StepCost product = cost(graph.add(MatMulInteger{}, {a, b}), {a->type, b->type});
  EXPECT_DOUBLE_EQ(product.flops, 2 * 4 * 6 * 3);
  EXPECT_EQ(dtype_size(product.dtype), 1u);
}

TEST(StepCost, AGatherReadsWhatItTakes) {
  Graph graph;
  Value* table = graph.add_input(floats({1000, 16}), "table");
  Value* rows = graph.add_input(Type::tensor(DType::i64, Dims{2}), "rows");
  const StepCost taken = cost(graph.add(Gather{}, {table, rows}), {table->type, rows->type});
  EXPECT_DOUBLE_EQ(taken.bytes, 2 * 2 * 16 * 4 + 2 * 8);
}

TEST(StepCost, ProfilesCountBytesOfInputsAndOutputs) {
  auto graph = std::make_unique<Graph>();
  Value* x = graph->add_input(floats({Dim::symbol("N"), 8}), "x");
  Value* y = graph->add(MatMul{}, {x, graph->add_constant(Tensor(DType::f32, {8, 5}))}, "y");
  graph->outputs = {graph->add(Mul{}, {y, y}, "square")};
  PlanOptions options{.threads = 1, .isa = cpu::isa()};
  Session session(Plan::create(std::move(graph), options));
  std::vector<StepTime> profile;
  const std::vector<Datum> inputs{Tensor(DType::f32, {3, 8})};
  session.run(inputs, &profile);
  ASSERT_EQ(profile.size(), 2u);
  EXPECT_DOUBLE_EQ(cost_of(profile[0]).bytes, 4 * (3 * 8 + 8 * 5 + 3 * 5));
  EXPECT_DOUBLE_EQ(cost_of(profile[0]).flops, 2 * 3 * 8 * 5);
  EXPECT_DOUBLE_EQ(cost_of(profile[1]).bytes, 4 * 2 * 3 * 5);
  EXPECT_LE(profile[0].start + profile[0].elapsed, profile[1].start + 1e-9);
}

}  // namespace
}  // namespace dais
