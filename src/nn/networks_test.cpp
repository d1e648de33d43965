#include "dais/networks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "nn/flags.h"
#include "nn/small_networks_test.h"

namespace dais::nn {
namespace {

struct Count {
  const char* name;
  int64_t parameters;
};

/// Published counts where there are some (of the reference implementations, without running
/// statistics); those of BERT with the head of two classes, of U-Net with two classes.
TEST(Networks, HaveThePublishedNumberOfParameters) {
  constexpr Count counts[] = {{"mlp", 669706},
                              {"lenet5", 61706},
                              {"alexnet", 61100840},
                              {"vgg11", 132863336},
                              {"vgg16", 138357544},
                              {"googlenet", 6624904},
                              {"resnet18", 11689512},
                              {"resnet34", 21797672},
                              {"resnet50", 25557032},
                              {"mobilenet-v2", 3504872},
                              {"efficientnet-b0", 5288548},
                              {"densenet121", 7978856},
                              {"vit-tiny", 5717416},
                              {"unet", 31037633 + 65},
                              {"bert-tiny", 4385920 + 2 * 129},
                              {"bert-base", 109482240 + 2 * 769},
                              {"gpt-124m", 124439808}};
  for (const Count& count : counts)
    EXPECT_EQ(recipe(count.name).build({}, 0).parameter_count(), count.parameters) << count.name;
}

class SmallNetworks : public testing::TestWithParam<Small> {};

TEST_P(SmallNetworks, LoadBackAndRunAlikeOnPlainLoopsAndOnKernels) {
  const Small& small = GetParam();
  Network net = recipe(small.name).build(small.values, 5);
  const Model model = Model::parse(net.onnx());
  InferenceSession plain = model.compile({.optimize = Optimize::off}).session();
  InferenceSession tuned = model.compile().session();
  for (const ValueInfo& info : model.inputs()) {
    plain.set(info.name, input_for(info.name, info.dtype, *info.shape, small));
    tuned.set(info.name, input_for(info.name, info.dtype, *info.shape, small));
  }
  plain.run();
  tuned.run();
  for (const ValueInfo& info : model.outputs()) {
    const std::span<const float> a = plain.get(info.name).data<float>();
    const std::span<const float> b = tuned.get(info.name).data<float>();
    ASSERT_EQ(a.size(), b.size());
    ASSERT_GT(a.size(), 0u);
    float largest = 0, differs = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      largest = std::max(largest, std::abs(a[i]));
      differs = std::max(differs, std::abs(a[i] - b[i]));
    }
    EXPECT_LE(differs, 1e-4f * largest) << info.name;
    EXPECT_GT(largest, 0) << info.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, SmallNetworks, testing::ValuesIn(small_networks()),
                         [](const auto& info) { return test_name(info.param); });

TEST(Networks, EverySmallOneIsARecipeAndEveryFamilyIsRun) {
  for (const Recipe& each : recipes()) {
    const std::string family = each.name.substr(0, each.name.find('-'));
    EXPECT_TRUE(std::any_of(small_networks().begin(), small_networks().end(),
                            [&](const Small& small) {
                              return std::string(small.name).substr(0, family.size()) == family;
                            }))
        << each.name;
  }
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void expect_message(const std::string& name, const Settings& values, const std::string& part) {
  const std::string message = message_of([&] { recipe(name).build(values, 0); });
  EXPECT_NE(message.find(part), std::string::npos) << name << ": " << message;
}

TEST(Networks, WrongNamesAndSettingsAreExplained) {
  expect_message("resnet81", {}, "Did you mean 'resnet18'?");
  expect_message("resnet18", {{"clases", "3"}}, "Did you mean '--classes'?");
  expect_message("resnet18", {{"classes", "0"}}, "from 1 to 1048576");
  expect_message("resnet18", {{"classes", "ten"}}, "'ten' is no whole number (--classes)");
  expect_message("resnet18", {{"classes", "1e3"}}, "no whole number");
  expect_message("resnet18", {{"input", "3x32"}}, "CHANNELSxHEIGHTxWIDTH");
  expect_message("resnet18", {{"input", "3x-1x32"}}, "-1 is outside its limits");
  expect_message("resnet18", {{"input", "12"}}, "wants an image");
  expect_message("vgg16", {{"input", "3x16x16"}}, "at least 32 pixels");
  expect_message("unet", {{"input", "3x100x100"}}, "multiples of 16");
  expect_message("bert-tiny", {{"heads", "3"}}, "3 heads do not divide a width of 128");
  expect_message("vit-tiny", {{"patch", "15"}}, "do not divide");
  expect_message("lenet5", {{"filters", "6"}}, "two convolutions");
  expect_message("mlp", {{"hidden", "64,"}}, "no list of whole numbers");
  expect_message("mlp", {{"dropout", "1.5"}}, "outside its limits");
  expect_message("vgg11", {{"batch-norm", "yes"}}, "neither true nor false");
}

TEST(Networks, NothingOfTheSizeIsAskedForBeforeWritingIt) {
  const Network net = Gpt{.width = 12288, .layers = 96, .heads = 96}.build();
  EXPECT_GT(net.parameter_count(), 174'000'000'000);
}

}  // namespace
}  // namespace dais::nn
