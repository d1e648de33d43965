#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "nn/golden_test.h"
#include "train/step.h"

namespace dais::train {
namespace {

/// The options of a curve, in PyTorch's words.
StepOptions options_of(const nlohmann::json& about, const nlohmann::json& curve) {
  StepOptions out;
  out.threads = 2;
  if (about["data"] == "tokens") out.loss.kind = LossKind::next_token;
  if (about["data"] == "speech") out.loss.kind = LossKind::ctc;
  OptimiserOptions& optimiser = out.optimiser;
  optimiser.kind = optimiser_from_name(curve["optimizer"].get<std::string>());
  optimiser.momentum = curve.value("momentum", 0.0);
  optimiser.beta1 = curve.value("beta1", optimiser.beta1);
  optimiser.beta2 = curve.value("beta2", optimiser.beta2);
  if (curve.contains("epsilon")) optimiser.epsilon = curve["epsilon"].get<double>();
  if (curve.contains("weight_decay")) optimiser.weight_decay = curve["weight_decay"].get<double>();
  optimiser.decay_all = true;
  return out;
}

data::Batch batch_of(const nlohmann::json& about, int64_t step) {
  golden::Batch drawn = golden::batch(about, step);
  data::Batch out;
  const int64_t count = drawn.input.shape()[0];
  if (about["data"] == "speech") {
    out.input_lengths = Tensor(DType::i64, {count});
    out.target_lengths = Tensor(DType::i64, {count});
    std::ranges::fill(out.input_lengths.data<int64_t>(), drawn.input.shape()[3]);
    std::ranges::fill(out.target_lengths.data<int64_t>(), drawn.target.shape()[1]);
  }
  out.input = std::move(drawn.input);
  out.target = std::move(drawn.target);
  for (int64_t i = 0; i < count; ++i) out.indices.push_back(i);
  return out;
}

class GoldenCurves : public testing::TestWithParam<const char*> {};

/// PyTorch's losses over a hundred steps, from the same weights on the same batches.
TEST_P(GoldenCurves, AreThoseOfTheTrainer) {
  constexpr double kLimit = 1e-3;
  const nlohmann::json about = golden::load(GetParam());
  const auto bytes = golden::network(about).onnx();
  const onnx::Model model = onnx::import_model(Bytes(bytes));
  for (const nlohmann::json& curve : about["curves"]) {
    TrainingStep step(model, options_of(about, curve), batch_of(about, 0));
    const std::vector<double> losses = curve["losses"];
    double worst = 0;
    for (size_t i = 0; i < losses.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const double loss = step.run(batch_of(about, at), curve["rate"], at).loss;
      ASSERT_TRUE(std::isfinite(loss)) << "step " << i;
      worst = std::max(worst, std::fabs(loss - losses[i]) / losses[i]);
    }
    EXPECT_LT(worst, kLimit) << curve["optimizer"];
    std::printf("%s, %s: within %.1e\n", GetParam(), curve["optimizer"].get<std::string>().c_str(),
                worst);
  }
}

INSTANTIATE_TEST_SUITE_P(, GoldenCurves,
                         testing::Values("mlp", "lenet5", "resnet18", "resnet50", "gpt-tiny",
                                         "lstm-lm", "deepspeech2"),
                         [](const auto& about) {
                           std::string name = about.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace dais::train
