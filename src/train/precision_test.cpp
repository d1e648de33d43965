#include "train/precision.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/philox.h"
#include "dais/nn.h"
#include "ops/matmul/matmul.h"
#include "train/gradient_check.h"

namespace dais::train {
namespace {

data::Batch images(int64_t count) {
  const Philox random(4);
  data::Batch out;
  out.input = Tensor(DType::f32, {count, 1, 8, 8});
  out.target = Tensor(DType::i64, {count});
  uint64_t at = 0;
  for (float& x : out.input.data<float>()) x = static_cast<float>(random.normal(at++));
  for (int64_t i = 0; i < count; ++i) {
    out.target.data<int64_t>()[static_cast<size_t>(i)] = i % 3;
    // A bright corner tells the class.
    out.input.data<float>()[static_cast<size_t>(i * 64 + i % 3)] += 4;
    out.indices.push_back(i);
  }
  return out;
}

onnx::Model network(double dropout = 0) {
  nn::Network net("small", 3);
  nn::Value x = net.image(1, 8, 8);
  x = nn::relu(nn::batch_norm(nn::conv(x, 4, {.padding = 1})));
  x = nn::max_pool(x);
  x = nn::dropout(nn::flatten(x), dropout);
  net.output("logits", nn::linear(x, 3));
  const auto bytes = net.onnx();
  return onnx::import_model(Bytes(bytes));
}

TEST(Precision, SixteenBitsLearnWithFullWeights) {
  const onnx::Model model = network();
  const data::Batch batch = images(24);
  for (const Precision precision : {Precision::bf16, Precision::fp16}) {
    SCOPED_TRACE(precision_name(precision));
    StepOptions options;
    options.precision = precision;
    options.threads = 1;
    options.optimiser.momentum = 0.9;
    TrainingStep step(model, options, batch);
    double first = 0, last = 0;
    for (int i = 0; i < 40; ++i) {
      const Outcome outcome = step.run(batch, 0.05, i);
      ASSERT_TRUE(outcome.finite || outcome.overflowed);
      last = outcome.loss;
      if (i == 0) first = last;
    }
    EXPECT_LT(last, 0.2 * first);
    for (const auto& [name, tensor] : step.weights()) {
      if (name != "loss_scale") {
        EXPECT_EQ(tensor.dtype(), DType::f32) << name;
      }
    }
  }
}

/// The first update that counts is Adam's first, however many were left out before: its moments'
/// corrections make every step as long as the rate, whatever the gradient.
TEST(Precision, UpdatesThatOverflowDoNotAgeTheMoments) {
  const onnx::Model model = network();
  const data::Batch batch = images(24);
  StepOptions options;
  options.precision = Precision::fp16;
  options.threads = 1;
  options.optimiser.kind = OptimiserKind::adam;
  TrainingStep step(model, options, batch);
  for (auto& [name, tensor] : step.state())
    if (name == "loss_scale") Tensor(tensor).data<double>()[0] = 0x1p40;
  const auto copies = [&] {
    std::map<std::string, Tensor> out;
    for (const auto& [name, tensor] : step.weights()) out[name] = tensor.clone();
    return out;
  };
  constexpr double kRate = 1e-3;
  const auto before = copies();
  int left_out = 0;
  Outcome outcome;
  for (int i = 0; i < 30 && !outcome.updated; ++i) {
    outcome = step.run(batch, kRate, i);
    left_out += outcome.overflowed;
  }
  ASSERT_TRUE(outcome.updated);
  ASSERT_GE(left_out, 2);
  const auto after = copies();
  const Tensor &from = before.at("linear1.weight"), &to = after.at("linear1.weight");
  double longest = 0;
  for (int64_t i = 0; i < from.elements(); ++i)
    longest = std::max(longest, std::fabs(to.to_double(i) - from.to_double(i)));
  EXPECT_NEAR(longest, kRate, 0.01 * kRate);
}

TEST(Precision, ConstantsBeyondHalfAreNamed) {
  Graph graph;
  Value* x = graph.add_input(Type::tensor(DType::f32, Dims{2, 2}), "x");
  Value* w = graph.add_constant(Tensor::of<float>({2, 2}, {1, 70000, 0, 1}));
  w->name = "large";
  Value* v = graph.add_constant(Tensor::of<float>({2, 2}, {1, 65504, -INFINITY, 1}));
  graph.outputs = {graph.add(MatMul{}, {graph.add(MatMul{}, {x, w}), v})};
  const auto bf16 = graph.clone();
  lower_precision(graph, Precision::fp16, true);
  EXPECT_EQ(beyond_half(graph), std::vector<std::string>{"large"});
  lower_precision(*bf16, Precision::bf16, true);
  EXPECT_TRUE(beyond_half(*bf16).empty());
}

TEST(Precision, LossScaleFallsAndRises) {
  LossScale scale(LossScale::initial());
  EXPECT_EQ(scale.factor(), 65536);
  EXPECT_TRUE(scale.follow(false));
  EXPECT_EQ(scale.factor(), 32768);
  for (int i = 0; i < 2000; ++i) scale.follow(true);
  EXPECT_EQ(scale.factor(), 65536);
  bool goes_on = true;
  for (int i = 0; i < 60 && goes_on; ++i) goes_on = scale.follow(false);
  EXPECT_FALSE(goes_on);
}

TEST(GradientCheck, AgreesWithDifferences) {
  const onnx::Model model = network(0.25);
  const GradientCheck found = check_gradients(model, {}, images(4));
  EXPECT_EQ(found.rows.size(), 7u);
  for (const auto& row : found.rows) EXPECT_LT(row.error, 1e-5) << row.parameter;
  EXPECT_GT(std::fabs(found.rows.back().by_gradient), 1e-4);
}

}  // namespace
}  // namespace dais::train
