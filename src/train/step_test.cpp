#include "train/step.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/philox.h"
#include "dais/nn.h"

namespace dais::train {
namespace {

/// Points of four classes around four corners.
data::Batch corners(int64_t count, uint64_t seed) {
  const Philox random(seed);
  data::Batch out;
  out.input = Tensor(DType::f32, {count, 2});
  out.target = Tensor(DType::i64, {count});
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t label = i % 4;
    out.target.data<int64_t>()[at] = label;
    for (size_t k = 0; k < 2; ++k) {
      const double corner = (label >> k & 1) ? 1 : -1;
      out.input.data<float>()[at * 2 + k] =
          static_cast<float>(corner + 0.3 * random.normal(at * 2 + k));
    }
    out.indices.push_back(i);
  }
  return out;
}

onnx::Model network(double dropout = 0, bool norm = false) {
  nn::Network net("corners", 3);
  nn::Value x = net.input("features", {"batch", 2});
  x = nn::linear(x, 16);
  if (norm) x = nn::batch_norm(x);
  x = nn::relu(x);
  x = nn::dropout(x, dropout);
  net.output("logits", nn::linear(x, 4));
  const auto bytes = net.onnx();
  return onnx::import_model(Bytes(bytes));
}

StepOptions sgd(double momentum = 0.9) {
  StepOptions out;
  out.optimiser.momentum = momentum;
  out.threads = 1;
  return out;
}

double loss_after(TrainingStep& step, const data::Batch& batch, int steps) {
  double loss = 0;
  for (int i = 0; i < steps; ++i) loss = step.run(batch, 0.1, i).loss;
  return loss;
}

TEST(TrainingStep, LearnsToTellCornersApart) {
  const onnx::Model model = network();
  const data::Batch batch = corners(64, 1);
  TrainingStep step(model, sgd(), batch);
  const double before = step.run(batch, 0, 0, false).loss;
  EXPECT_NEAR(before, std::log(4.0), 0.5);
  EXPECT_LT(loss_after(step, batch, 50), 0.1 * before);
  EXPECT_EQ(step.parameters(), 2u * 16 + 16 + 16 * 4 + 4);
  EXPECT_EQ(step.output().shape(), (Shape{64, 4}));
}

TEST(TrainingStep, DryRunsChangeNothing) {
  const onnx::Model model = network(0.3, true);
  const data::Batch batch = corners(16, 1);
  TrainingStep step(model, sgd(), batch);
  std::vector<NamedTensor> before;
  for (const auto& [name, tensor] : step.state()) before.emplace_back(name, tensor.clone());
  step.run(batch, 0.1, 0, false);
  const auto after = step.state();
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_TRUE(after[i].second.identical(before[i].second)) << before[i].first;
}

TEST(TrainingStep, GoesOnBitExactlyFromItsState) {
  const onnx::Model model = network(0.3, true);
  const data::Batch batch = corners(32, 1);
  StepOptions options = sgd();
  options.optimiser.kind = OptimiserKind::adamw;
  options.optimiser.ema = 0.99;
  TrainingStep whole(model, options, batch), first(model, options, batch),
      second(model, options, batch);
  for (int i = 0; i < 10; ++i) whole.run(batch, 0.01, i);
  for (int i = 0; i < 5; ++i) first.run(batch, 0.01, i);
  second.load(first.state());
  for (int i = 5; i < 10; ++i) second.run(batch, 0.01, i);
  const auto a = whole.state(), b = second.state();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(a[i].second.identical(b[i].second)) << a[i].first;
}

TEST(TrainingStep, DropoutDrawsAnewEachStepAndByTheSeed) {
  const onnx::Model model = network(0.5);
  const data::Batch batch = corners(32, 1);
  StepOptions options = sgd();
  TrainingStep step(model, options, batch);
  const double first = step.run(batch, 0, 0, false).loss;
  EXPECT_EQ(step.run(batch, 0, 0, false).loss, first);
  EXPECT_NE(step.run(batch, 0, 1, false).loss, first);
  options.seed = 1;
  TrainingStep other(model, options, batch);
  EXPECT_NE(other.run(batch, 0, 0, false).loss, first);
}

TEST(TrainingStep, AccumulatedBatchesEqualOneLargeBatch) {
  const onnx::Model model = network();
  const data::Batch large = corners(32, 1);
  StepOptions options = sgd();
  TrainingStep whole(model, options, large);
  options.accumulate = 2;
  data::Batch halves[2];
  for (int h = 0; h < 2; ++h) {
    halves[h].input = Tensor(DType::f32, {16, 2});
    halves[h].target = Tensor(DType::i64, {16});
    for (size_t i = 0; i < 16; ++i) {
      const size_t from = static_cast<size_t>(h) * 16 + i;
      halves[h].target.data<int64_t>()[i] = large.target.data<int64_t>()[from];
      for (size_t k = 0; k < 2; ++k)
        halves[h].input.data<float>()[i * 2 + k] = large.input.data<float>()[from * 2 + k];
    }
  }
  TrainingStep parts(model, options, halves[0]);
  for (int i = 0; i < 3; ++i) {
    whole.run(large, 0.1, i);
    EXPECT_FALSE(parts.run(halves[0], 0.1, i).updated);
    EXPECT_TRUE(parts.run(halves[1], 0.1, i).updated);
  }
  const auto a = whole.weights(), b = parts.weights();
  for (const auto& [name, tensor] : a)
    for (int64_t i = 0; i < tensor.elements(); ++i)
      EXPECT_NEAR(tensor.to_double(i), b.at(name).to_double(i), 1e-5) << name;
}

TEST(TrainingStep, FrozenTensorsStay) {
  const onnx::Model model = network();
  const data::Batch batch = corners(16, 1);
  StepOptions options = sgd();
  options.freeze = "^linear1";
  TrainingStep step(model, options, batch);
  EXPECT_EQ(step.parameters(), 16u * 4 + 4);
  options.freeze = ".";
  EXPECT_THROW(TrainingStep(model, options, batch), Error);
  options.freeze = "(";
  EXPECT_THROW(TrainingStep(model, options, batch), Error);
}

// After one step from 0 and 1: (1 - momentum) * statistic of the batch, the variance unbiased.
TEST(TrainingStep, RunningStatisticsFollowTheBatch) {
  nn::Network net("norm", 3);
  nn::Value x = net.input("features", {"batch", 2});
  net.output("logits", nn::linear(nn::batch_norm(x), 4));
  const auto bytes = net.onnx();
  const onnx::Model model = onnx::import_model(Bytes(bytes));
  const data::Batch batch = corners(8, 1);
  TrainingStep step(model, sgd(), batch);
  step.run(batch, 0.1, 0);
  double sum = 0, squares = 0;
  for (size_t i = 0; i < 8; ++i) sum += static_cast<double>(batch.input.data<float>()[i * 2]) / 8;
  for (size_t i = 0; i < 8; ++i)
    squares += std::pow(static_cast<double>(batch.input.data<float>()[i * 2]) - sum, 2) / 7;
  bool mean = false, variance = false;
  for (const auto& [name, tensor] : step.state()) {
    mean |= std::fabs(tensor.to_double() - 0.1 * sum) < 1e-6 && tensor.elements() == 2;
    variance |= std::fabs(tensor.to_double() - (0.9 + 0.1 * squares)) < 1e-6;
  }
  EXPECT_TRUE(mean && variance);
}

TEST(TrainingStep, NamesTheFirstOperatorThatIsNotFinite) {
  const onnx::Model model = network();
  data::Batch batch = corners(16, 1);
  TrainingStep step(model, sgd(), batch);
  batch.input.data<float>()[3] = NAN;
  const Outcome outcome = step.run(batch, 0.1, 0);
  EXPECT_FALSE(outcome.finite);
  EXPECT_FALSE(outcome.updated);
  EXPECT_NE(step.find_not_finite(batch, 0.1, 0).find("input 'features'"), std::string::npos);
  batch.input.data<float>()[3] = 3e38f;
  EXPECT_FALSE(step.run(batch, 0.1, 0).finite);
  const std::string found = step.find_not_finite(batch, 0.1, 0);
  // The squares of the gradients are the first numbers beyond the range.
  EXPECT_NE(found.find("reduce_sum_square"), std::string::npos) << found;
  batch.input.data<float>()[3] = 1;
  EXPECT_TRUE(step.run(batch, 0.1, 0).updated);
}

TEST(TrainingStep, MisfitsAreToldBeforeTheFirstStep) {
  const onnx::Model model = network();
  data::Batch batch = corners(16, 1);
  batch.input = Tensor(DType::f32, {16, 3});
  EXPECT_THROW(TrainingStep(model, sgd(), batch), Error);
  batch.input = Tensor(DType::i64, {16, 2});
  EXPECT_THROW(TrainingStep(model, sgd(), batch), Error);
}

TEST(TrainingForm, NewHeadsHaveTheClassesAskedFor) {
  onnx::Model model = network();
  replace_head(model, 7, 1);
  EXPECT_EQ(model.graph->outputs[0]->type.text(), "f32[batch,7]");
  const data::Batch batch = corners(16, 1);
  TrainingStep step(model, sgd(), batch);
  EXPECT_LT(loss_after(step, batch, 50), 0.5);
}

}  // namespace
}  // namespace dais::train
