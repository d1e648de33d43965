#include "autodiff/autodiff.h"

#include <gtest/gtest.h>

#include <set>

#include "autodiff/gradient_case.h"
#include "base/error.h"
#include "base/threads.h"
#include "ir/call.h"
#include "ops/custom/custom.h"
#include "ops/elementwise/elementwise.h"
#include "ops/hardmax/hardmax.h"
#include "ops/loss/loss.h"
#include "ops/reduce/reduce.h"

namespace dais {
namespace {

void run(void (*family)(GradientCases&)) {
  // Small loops are not worth a second thread.
  const int threads = team_size();
  set_team_size(1);
  GradientCases cases;
  family(cases);
  for (const GradientCase& one : cases.all()) {
    SCOPED_TRACE(one.text);
    try {
      EXPECT_EQ(check_gradients(one), "");
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
  set_team_size(threads);
}

TEST(Gradients, OfElementwiseOps) { run(elementwise_cases); }
TEST(Gradients, OfOpsOnShapes) { run(shape_cases); }
TEST(Gradients, OfProducts) { run(product_cases); }
TEST(Gradients, OfWindows) { run(window_cases); }
TEST(Gradients, OfNorms) { run(norm_cases); }
TEST(Gradients, OfSequences) { run(sequence_cases); }
TEST(Gradients, OfSignals) { run(signal_cases); }
TEST(Gradients, OfControlFlow) { run(control_cases); }

/// Each op has a gradient that a case checks, or a reason why it has none.
TEST(Gradients, EveryOpIsCheckedOrHasAReason) {
  GradientCases cases;
  for (const auto family : {elementwise_cases, shape_cases, product_cases, window_cases, norm_cases,
                            sequence_cases, signal_cases, control_cases})
    family(cases);
  std::set<const Op*> checked;
  for (const GradientCase& one : cases.all()) checked.insert(one.op);
  for (const Op* op : op_registry().ops()) {
    if (op == &Custom::op) continue;  // who adds one names its gradient; tests/gpu has an example
    const bool reason = !no_gradient_reason(*op).empty();
    EXPECT_NE(checked.contains(op), reason)
        << op->name
        << (reason ? " has a reason for no gradient, and a case for one"
                   : " has neither a checked gradient nor a reason for having none");
  }
}

TEST(Autodiff, SumsTheGradientsOfAllUses) {
  Graph graph;
  Value* x = graph.add_input(Type::tensor(DType::f32, Dims{2}), "x");
  Value* unused = graph.add_input(Type::tensor(DType::f32, Dims{2}), "unused");
  Value* y = graph.add(Add{}, {graph.add(Mul{}, {x, x}), x});
  Value* loss = graph.add(ReduceSum{.keepdims = false}, {y});
  const Values wrt{x, unused};
  const Values dx = append_gradients(graph, loss, wrt);
  EXPECT_EQ(dx[1], nullptr);
  graph.outputs = {dx[0]};
  graph.verify();
  const std::vector<Datum> in{Tensor::of<float>(Shape{2}, {3, -1}),
                              Tensor::of<float>(Shape{2}, {0, 0})};
  EXPECT_TRUE(evaluate(graph, in)[0].tensor.identical(Tensor::of<float>(Shape{2}, {7, -1})));
}

/// The class weights of a loss have no rule: silence would pass for "does not depend".
TEST(Autodiff, NamesAnInputThatItsRuleLeavesOut) {
  Graph graph;
  Value* scores = graph.add_input(Type::tensor(DType::f32, Dims{4, 3}), "scores");
  Value* target = graph.add_input(Type::tensor(DType::i64, Dims{4}), "target");
  Value* weight = graph.add_input(Type::tensor(DType::f32, Dims{3}), "weight");
  Value* loss = graph.add(NegativeLogLikelihoodLoss{}, {scores, target, weight});
  EXPECT_NE(append_gradients(graph, loss, std::span(&scores, 1))[0], nullptr);
  try {
    append_gradients(graph, loss, std::span(&weight, 1));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("input 2 ('weight')"), std::string::npos)
        << error.what();
  }
}

TEST(Autodiff, NamesEveryNodeWithoutGradient) {
  Graph graph;
  Value* x = graph.add_input(Type::tensor(DType::f32, Dims{4}), "x");
  Value* one = graph.add(Hardmax{}, {x}, "first");
  Value* loss = graph.add(Hardmax{}, {graph.add(Exp{}, {one})}, "second");
  try {
    append_gradients(graph, loss, std::span(&x, 1));
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("2 nodes have no gradient"), std::string::npos) << text;
    EXPECT_NE(text.find("hardmax node 'first'"), std::string::npos) << text;
    EXPECT_NE(text.find("constant almost everywhere"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace dais
