#include <gtest/gtest.h>

#include "backends/cpu/isa.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/matmul.h"
#include "runtime/row_test.h"
#include "runtime/session.h"

namespace dais {
namespace {

struct Made {
  std::shared_ptr<const Plan> plan;
  std::weak_ptr<const void> weights;
};

/// x W, and x + W where the weights are to be read as they are.
Made product_plan(const Tensor& kept_weights, bool also_added, bool keep = false) {
  auto graph = std::make_unique<Graph>();
  const Tensor weights = kept_weights.clone();
  Value* x = graph->add_input(Type::tensor(DType::f32, Dims{Dim::symbol("N"), 64}), "x");
  Value* w = graph->add_constant(weights, "w");
  graph->outputs = {graph->add(MatMul{}, {x, w}, "y")};
  if (also_added) graph->outputs.push_back(graph->add(Add{}, {x, w}, "sum"));
  PlanOptions options{.threads = 1, .isa = cpu::isa()};
  options.keep_constants = keep;
  return {Plan::create(std::move(graph), options), weights.owner()};
}

TEST(PackedConstants, GoWhereOnlyPackedKernelsReadThem) {
  const Tensor weights = sample<float>({64, 64});
  const Made made = product_plan(weights, false);
  EXPECT_TRUE(made.weights.expired());
  Graph reference;
  const Tensor x = sample<float>({64, 64}, 1, 2);
  Value* in = reference.add_input(Type::of(x), "x");
  reference.outputs = {reference.add(MatMul{}, {in, reference.add_constant(weights)})};
  const std::vector<Datum> inputs{x};
  Session session(made.plan);
  expect_close(session.run(inputs)[0].tensor, evaluate(reference, inputs)[0].tensor, {1e-4, 1e-4},
               "product");
}

TEST(PackedConstants, StayWhereOthersReadThem) {
  const Tensor weights = sample<float>({64, 64});
  const Made made = product_plan(weights, true);
  EXPECT_FALSE(made.weights.expired());
  const Tensor x = sample<float>({64, 64}, 1, 2);
  const std::vector<Datum> inputs{x};
  Session session(made.plan);
  const Tensor sum = session.run(inputs)[1].tensor;
  for (int64_t i = 0; i < sum.elements(); ++i)
    ASSERT_EQ(sum.to_double(i), static_cast<double>(x.data<float>()[static_cast<size_t>(i)] +
                                                    weights.data<float>()[static_cast<size_t>(i)]));
  EXPECT_FALSE(product_plan(weights, false, true).weights.expired());
}

}  // namespace
}  // namespace dais
