#include "nn/golden_test.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "dais/model.h"

namespace dais::golden {
namespace {

/// The mean cross entropy of logits [..., classes].
double cross_entropy(const Tensor& logits, const Tensor& targets) {
  const int64_t classes = logits.shape().back();
  const float* row = logits.storage<float>();
  double sum = 0;
  for (const int64_t target : targets.data<int64_t>()) {
    double total = 0;
    for (int64_t c = 0; c < classes; ++c) total += std::exp(double{row[c]});
    sum += std::log(total) - double{row[target]};
    row += classes;
  }
  return sum / static_cast<double>(targets.elements());
}

/// Of networks whose answers in training are those at inference: initial weights, batches and
/// structure are PyTorch's.
TEST(GoldenCurves, BeginAtTheLossOfTheInitialWeights) {
  for (const char* name : {"mlp", "lenet5", "gpt-tiny", "lstm-lm"}) {
    const nlohmann::json about = load(name);
    const Model model = Model::parse(network(about).onnx());
    const Batch first = batch(about, 0);
    InferenceSession session = model.compile().session();
    session.set(model.inputs()[0].name, first.input);
    session.run();
    const double loss = cross_entropy(session.get("logits"), first.target);
    for (const auto& curve : about["curves"])
      EXPECT_NEAR(loss, curve["losses"][0].get<double>(), 1e-5 * loss) << name;
  }
}

TEST(GoldenCurves, HalveTheirLossInAHundredSteps) {
  for (const char* name :
       {"mlp", "lenet5", "resnet18", "resnet50", "gpt-tiny", "lstm-lm", "deepspeech2"}) {
    const nlohmann::json about = load(name);
    for (const auto& curve : about["curves"]) {
      const std::vector<double> losses = curve["losses"];
      ASSERT_EQ(losses.size(), 100u) << name;
      EXPECT_LT(std::accumulate(losses.end() - 5, losses.end(), 0.0) / 5, losses.front() / 2)
          << name;
    }
  }
}

}  // namespace
}  // namespace dais::golden
