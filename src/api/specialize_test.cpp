#include <gtest/gtest.h>

#include "api/compile.h"
#include "ops/control/control.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reshape/reshape.h"
#include "ops/run_op.h"
#include "ops/shape/shape.h"
#include "runtime/session.h"

namespace dais {
namespace {

/// relu(if x has one row: squeeze(x), else: x), which has no rank until the sizes of x are known.
std::unique_ptr<Graph> model() {
  auto graph = std::make_unique<Graph>();
  Value* x = graph->add_input(Type::tensor(DType::f32, Dims{Dim::symbol("n"), 4}), "x");
  Value* rows = graph->add(ShapeOf{.start = 0, .end = 1}, {x});
  Value* one = graph->add(Equal{}, {rows, graph->add_constant(Tensor::of<int64_t>({1}, {1}))});
  std::vector<std::unique_ptr<Graph>> regions;
  for (const bool squeeze : {true, false}) {
    auto region = std::make_unique<Graph>();
    Value* in = region->add_input(x->type, "in");
    if (squeeze)
      in = region->add(Squeeze{}, {in, region->add_constant(Tensor::of<int64_t>({1}, {0}))});
    region->outputs = {in};
    regions.push_back(std::move(region));
  }
  Node& choice =
      graph->add_node(If::op, Attrs::of(If{1}), {one, x, x}, 1, "choice", std::move(regions));
  graph->outputs = {graph->add(Relu{}, {choice.outs[0]})};
  return graph;
}

TEST(Specialize, RepeatedSizesSettleBranches) {
  const auto graph = model();
  Session session(compile(graph->clone()).plan);
  for (const int64_t rows : {1, 3, 1}) {
    for (int run = 0; run < 4; ++run) {
      const Datum x = test_tensor({rows, 4}, run + 1);
      const Tensor wanted = evaluate(*graph, std::span(&x, 1))[0].tensor;
      const auto& got = session.run(std::span(&x, 1));
      EXPECT_TRUE(got[0].tensor.identical(wanted)) << rows << " rows, run " << run;
    }
    for (const Step& step : session.plan().steps()) EXPECT_TRUE(step.bound_early);
    EXPECT_TRUE(session.plan().graph().inputs[0]->type.static_shape());
  }
  const Datum wrong = test_tensor({3, 5});
  EXPECT_THROW(session.run(std::span(&wrong, 1)), Error);
}

TEST(Specialize, OtherTypesOfTheSameSizesAreErrors) {
  Session session(compile(model()).plan);
  const Datum x = test_tensor({3, 4});
  for (int run = 0; run < 4; ++run) session.run(std::span(&x, 1));
  const Datum ints = Tensor(DType::i32, Shape{3, 4});
  EXPECT_THROW(session.run(std::span(&ints, 1)), Error);
}

}  // namespace
}  // namespace dais
