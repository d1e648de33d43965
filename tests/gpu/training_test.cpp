// A training step on the emulated device does what it does on the CPU.
#include <gtest/gtest.h>

#include "dais/nn.h"
#include "row_agreement.h"
#include "train/step.h"

namespace dais::train {
namespace {

onnx::Model network() {
  nn::Network net("small", 3);
  nn::Value x = net.input("image", {"batch", 2, 6, 6});
  x = nn::relu(nn::conv(x, 4));
  x = nn::flatten(x);
  net.output("logits", nn::linear(x, 5));
  const auto bytes = net.onnx();
  return onnx::import_model(Bytes(bytes));
}

data::Batch batch_of(int64_t count) {
  data::Batch out;
  out.input = sample<float>({count, 2, 6, 6}, 1, 7);
  out.target = Tensor(DType::i64, {count});
  for (int64_t i = 0; i < count; ++i) {
    out.target.data<int64_t>()[static_cast<size_t>(i)] = i % 5;
    out.indices.push_back(i);
  }
  return out;
}

void expect_same_training(StepOptions options, bool ahead = false) {
  const onnx::Model model = network();
  const data::Batch batch = batch_of(8);
  options.threads = 1;
  TrainingStep plain(model, options, batch);
  options.backend = test_backend();
  TrainingStep device(model, options, batch);
  for (int i = 0; i < 4; ++i) {
    if (ahead) device.prefetch(batch);
    const Outcome wanted = plain.run(batch, 0.05, i), got = device.run(batch, 0.05, i);
    EXPECT_NEAR(got.loss, wanted.loss, 1e-5) << "step " << i;
    EXPECT_NEAR(got.gradient_norm, wanted.gradient_norm, 1e-4) << "step " << i;
  }
  const auto a = plain.state(), b = device.state();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    expect_close(b[i].second, a[i].second, {1e-4, 1e-5}, a[i].first);
}

TEST(DeviceTraining, SgdWithMomentum) {
  StepOptions options;
  options.optimiser.momentum = 0.9;
  expect_same_training(options);
}

TEST(DeviceTraining, WithBatchesThatComeAhead) {
  StepOptions options;
  expect_same_training(options, true);
  options.accumulate = 2;
  expect_same_training(options, true);
}

TEST(DeviceTraining, AdamWOverTwoBatches) {
  StepOptions options;
  options.optimiser.kind = OptimiserKind::adamw;
  options.accumulate = 2;
  expect_same_training(options);
}

}  // namespace
}  // namespace dais::train
