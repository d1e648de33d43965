// The library's own way to a device: the same results as on the CPU, from C++ and from C.
#include <gtest/gtest.h>

#include <cmath>

#include "dais/c.h"
#include "dais/dais.h"

namespace dais {
namespace {

const char* const kModel = "examples/fashion/fashion.onnx";

Tensor image() {
  Tensor out(DType::f32, {2, 1, 28, 28});
  for (int64_t i = 0; i < out.elements(); ++i)
    out.storage<float>()[i] = std::sin(static_cast<float>(i));
  return out;
}

std::vector<float> probabilities(const ExecutableOptions& options) {
  InferenceSession session = Model::load(kModel).compile(options).session();
  session.set("image", image());
  session.run();
  const auto found = session.get("probability").data<float>();
  return {found.begin(), found.end()};
}

void expect_near(std::span<const float> got, std::span<const float> wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5) << i;
}

TEST(ApiDevice, SameResultsAsOnTheCpu) {
  const auto wanted = probabilities({.optimize = Optimize::off});
  expect_near(probabilities({.device = "emulated"}), wanted);
  // A device has plans of several precisions at a time.
  expect_near(probabilities({.device = "emulated", .matmul_precision = MatmulPrecision::high}),
              wanted);
  const Executable executable = Model::load(kModel).compile({.device = "emulated"});
  EXPECT_NE(executable.device().find("not hardware"), std::string::npos) << executable.device();
  EXPECT_TRUE(executable.warnings().empty());
}

/// Inputs that come ahead, and one that was announced but not set.
TEST(ApiDevice, InputsMayComeAhead) {
  InferenceSession session = Model::load(kModel).compile({.device = "emulated"}).session();
  InferenceSession plain = Model::load(kModel).compile().session();
  std::vector<Tensor> images;
  for (int i = 0; i < 4; ++i) {
    images.push_back(image());
    images.back().storage<float>()[i] = 5;
  }
  for (size_t i = 0; i < images.size(); ++i) {
    session.prefetch({{"image", images[(i + (i == 2 ? 2 : 1)) % images.size()]}});
    for (InferenceSession* one : {&session, &plain}) {
      one->set("image", images[i]);
      one->run();
    }
    expect_near(session.get("probability").data<float>(), plain.get("probability").data<float>());
  }
  EXPECT_THROW(session.prefetch({{"imag", images[0]}}), Error);
}

TEST(ApiDevice, FromC) {
  const auto wanted = probabilities({});
  dais_options options{};
  options.device = "emulated";
  dais_session* session = dais_session_open(kModel, &options);
  ASSERT_NE(session, nullptr) << dais_last_error();
  EXPECT_STRNE(dais_session_device(session), "CPU");
  EXPECT_EQ(dais_session_warning(session, 0), nullptr);
  const Tensor given = image();
  const dais_tensor tensor{1, 4, given.shape().begin(), given.raw(), given.bytes()};
  dais_tensor output{};
  EXPECT_EQ(dais_set_input(session, "image", &tensor), 0);
  EXPECT_EQ(dais_run(session), 0) << dais_last_error();
  ASSERT_EQ(dais_get_output(session, "probability", &output), 0);
  expect_near({static_cast<const float*>(output.data), wanted.size()}, wanted);
  dais_session_free(session);
}

TEST(ApiDevice, ReadingsSayWhatIsMissing) {
  DeviceReader reader;
  const DeviceReading reading = reader.read();
  EXPECT_TRUE(reading.cpu.memory_total_bytes.has_value());
  EXPECT_TRUE(!reading.gpus.empty() || !reading.gpus_missing.empty());
}

}  // namespace
}  // namespace dais
