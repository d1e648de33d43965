#include "train/recompute.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/philox.h"
#include "dais/nn.h"
#include "train/step.h"

namespace dais::train {
namespace {

/// Twelve blocks with batch norms and dropout, every second one with a shortcut around it.
onnx::Model network() {
  nn::Network net("blocks", 5);
  nn::Value x = net.image(3, 16, 16);
  x = nn::conv(x, 8, {.padding = 1});
  for (int i = 0; i < 12; ++i) {
    const nn::Value y =
        nn::dropout(nn::relu(nn::batch_norm(nn::conv(x, 8, {.padding = 1, .bias = false}))), 0.1);
    x = i % 2 == 0 ? x + y : y;
  }
  net.output("logits", nn::linear(nn::flatten(nn::global_average_pool(x)), 4));
  const auto bytes = net.onnx();
  return onnx::import_model(Bytes(bytes));
}

data::Batch images() {
  const Philox random(9);
  data::Batch out;
  out.input = Tensor(DType::f32, {16, 3, 16, 16});
  out.target = Tensor(DType::i64, {16});
  uint64_t at = 0;
  for (float& x : out.input.data<float>()) x = static_cast<float>(random.normal(at++));
  for (int64_t i = 0; i < 16; ++i) {
    out.target.data<int64_t>()[static_cast<size_t>(i)] = i % 4;
    out.indices.push_back(i);
  }
  return out;
}

/// Losses of some updates, and the memory of a step.
struct Ran {
  std::vector<double> losses;
  std::map<std::string, Tensor> weights;
  size_t arena = 0;
};

Ran run(int stretches, Precision precision) {
  const onnx::Model model = network();
  const data::Batch batch = images();
  StepOptions options;
  options.threads = 1;
  options.optimiser.momentum = 0.9;
  options.precision = precision;
  options.stretches = stretches;
  TrainingStep step(model, options, batch);
  Ran out;
  for (int i = 0; i < 5; ++i) out.losses.push_back(step.run(batch, 0.05, i).loss);
  for (const auto& [name, tensor] : step.weights()) out.weights[name] = tensor.clone();
  out.arena = step.arena_bytes();
  return out;
}

/// How far the weights and moments of one run are from those of another, over all elements.
double distance(const Ran& from, const Ran& to) {
  double squares = 0;
  for (const auto& [name, tensor] : to.weights)
    for (int64_t i = 0; i < tensor.elements(); ++i)
      squares += std::pow(from.weights.at(name).to_double(i) - tensor.to_double(i), 2);
  return std::sqrt(squares);
}

/// Runs the network in stretches; every run takes less memory and has the losses of `whole`.
std::vector<Ran> run_in_parts(const Ran& whole, Precision precision, double tolerance) {
  std::vector<Ran> out;
  size_t before = whole.arena;
  for (const int stretches : {2, 4}) {
    out.push_back(run(stretches, precision));
    const Ran& parts = out.back();
    EXPECT_LT(static_cast<double>(parts.arena), 0.85 * static_cast<double>(before)) << stretches;
    before = parts.arena;
    for (size_t i = 0; i < whole.losses.size(); ++i)
      EXPECT_NEAR(parts.losses[i], whole.losses[i], tolerance * whole.losses[i]) << i;
  }
  return out;
}

TEST(Recompute, TakesLessMemoryForTheSameNumbers) {
  const Ran whole = run(0, Precision::fp32);
  for (const Ran& parts : run_in_parts(whole, Precision::fp32, 1e-5))
    for (const auto& [name, tensor] : whole.weights)
      for (int64_t i = 0; i < tensor.elements(); ++i)
        ASSERT_NEAR(parts.weights.at(name).to_double(i), tensor.to_double(i), 1e-5) << name;
}

/// In 16 bits other sums round otherwise, one of some two hundred and what follows from it; how
/// much that moves depends on the machine's instructions. All are as near to what f32 gives.
TEST(Recompute, AsExactInSixteenBits) {
  const Ran exact = run(0, Precision::fp32), whole = run(0, Precision::bf16);
  for (const Ran& parts : run_in_parts(whole, Precision::bf16, 1e-2))
    EXPECT_LT(distance(parts, exact), 1.25 * distance(whole, exact));
}

}  // namespace
}  // namespace dais::train
