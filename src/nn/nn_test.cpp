#include "dais/nn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/graph.h"
#include "onnx/importer.h"
#include "ops/norm/norm.h"

namespace dais::nn {
namespace {

const Tensor& parameter(Network& net, const std::string& name) {
  for (const auto& value : net.graph().values())
    if (value->name == name) return *value->constant();
  throw Error(Code::not_found, name);
}

struct Moments {
  double mean = 0, deviation = 0, largest = 0;
};

Moments moments(Init init, const std::vector<int64_t>& shape) {
  Network net("drawn", 11);
  net.parameter("w", shape, init);
  const std::span<const float> values = parameter(net, "w").data<float>();
  Moments out;
  for (const float value : values) {
    out.mean += value;
    out.deviation += double{value} * value;
    out.largest = std::max(out.largest, std::abs(double{value}));
  }
  out.mean /= static_cast<double>(values.size());
  out.deviation = std::sqrt(out.deviation / static_cast<double>(values.size()));
  return out;
}

TEST(Init, HasTheMomentsItNames) {
  const std::vector<int64_t> matrix{400, 100}, filter{64, 32, 3, 3};
  EXPECT_NEAR(moments(Init::uniform(2), matrix).deviation, 2 / std::sqrt(3), 0.02);
  EXPECT_LE(moments(Init::uniform(2), matrix).largest, 2);
  EXPECT_NEAR(moments(Init::normal(0.5), matrix).deviation, 0.5, 0.01);
  EXPECT_NEAR(moments(Init::normal(0.5), matrix).mean, 0, 0.01);
  // Of a normal distribution cut at two deviations.
  EXPECT_NEAR(moments(Init::truncated_normal(1), matrix).deviation, 0.8796, 0.01);
  EXPECT_LE(moments(Init::truncated_normal(1), matrix).largest, 2);
  EXPECT_NEAR(moments(Init::kaiming_normal(), matrix).deviation, std::sqrt(2 / 400.0), 0.001);
  EXPECT_NEAR(moments(Init::kaiming_normal(), filter).deviation, std::sqrt(2 / 288.0), 0.001);
  EXPECT_NEAR(moments(Init::kaiming_normal(Init::Fan::out), filter).deviation, std::sqrt(2 / 576.0),
              0.001);
  EXPECT_NEAR(moments(Init::kaiming_uniform(), matrix).largest, std::sqrt(6 / 400.0), 0.001);
  EXPECT_NEAR(moments(Init::xavier_normal(), matrix).deviation, std::sqrt(2 / 500.0), 0.001);
  EXPECT_NEAR(moments(Init::xavier_uniform(), matrix).largest, std::sqrt(6 / 500.0), 0.001);
  EXPECT_NEAR(moments(Init::fan_in_uniform(), matrix).largest, 0.05, 0.0005);
  EXPECT_EQ(moments(Init::constant(3), matrix).deviation, 3);
}

/// A network with one layer, or with another before it.
Network with_head(uint64_t seed, bool deeper) {
  Network net("own", seed);
  Value x = net.input("features", {"batch", 8});
  if (deeper) x = relu(linear(x, 8, {.name = "first"}));
  net.output("logits", linear(x, 3, {.name = "head"}));
  return net;
}

TEST(Init, DependsOnSeedAndNameAlone) {
  Network a = with_head(1, false), b = with_head(1, true), c = with_head(2, false);
  EXPECT_TRUE(parameter(a, "head.weight").identical(parameter(b, "head.weight")));
  EXPECT_FALSE(parameter(a, "head.weight").identical(parameter(c, "head.weight")));
  EXPECT_EQ(a.onnx(), with_head(1, false).onnx());
}

TEST(Network, NamesLayersByScopeAndNumber) {
  Network net("own");
  Value x = net.image(3, 8, 8);
  x = conv(x, 4);
  {
    const Scope outer(net, "stage"), inner(x, "0");
    x = batch_norm(conv(conv(x, 4, {.bias = false}), 4, {.bias = false, .name = "last"}));
  }
  x = conv(x, 4);
  std::vector<std::string> names;
  for (const ParameterInfo& info : net.parameters()) names.push_back(info.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"conv1.weight", "conv1.bias", "stage.0.conv1.weight",
                                      "stage.0.last.weight", "stage.0.batch_norm1.weight",
                                      "stage.0.batch_norm1.bias", "conv2.weight", "conv2.bias"}));
}

TEST(Network, WritesInferenceFormWithWhatTrainingNeedsToKnow) {
  Network net("own");
  Value x = net.image(3, 8, 8);
  x = dropout(relu6(batch_norm(conv(x, 4))), 0.25);
  net.output("logits", linear(global_average_pool(x), 2));
  net.note("dais.task", "classification");
  const std::vector<uint8_t> bytes = net.onnx();
  const onnx::Model model = onnx::import_model(bytes);
  EXPECT_EQ(model.metadata.at("dais.task"), "classification");
  const std::string fixed = " " + model.metadata.at("dais.fixed") + " ";
  for (const char* name : {"batch_norm1.running_mean", "batch_norm1.running_var", "dropout1.ratio"})
    EXPECT_NE(fixed.find(std::string(" ") + name + " "), std::string::npos) << fixed;
  EXPECT_EQ(fixed.find("weight"), std::string::npos);
  EXPECT_EQ(model.graph->outputs.at(0)->type.text(), "f32[batch,2]");
  for (const auto& node : model.graph->nodes()) {
    const auto* norm = node->as<BatchNormalization>();
    EXPECT_TRUE(!norm || !norm->training_mode);
  }
}

TEST(Network, RefusesWhatDoesNotFit) {
  Network net("own");
  const Value x = net.image(3, 8, 8), tokens = net.tokens();
  EXPECT_THROW(conv(x, 4, {.groups = 2}), Error);
  EXPECT_THROW(conv(x, 0), Error);
  EXPECT_THROW(conv(x, 4, {.kernel = {3, 3, 3}}), Error);
  EXPECT_THROW(linear(x, -1), Error);
  EXPECT_THROW(conv(tokens, 4), Error);
  EXPECT_THROW(dropout(x, 1), Error);
  EXPECT_THROW(tokens.size(1), Error);
  EXPECT_THROW(x.size(4), Error);
  EXPECT_THROW(lstm(x, 4), Error);
  EXPECT_THROW(attention(x, x, x, {.heads = 3}), Error);
  EXPECT_THROW(net.onnx(), Error);
}

}  // namespace
}  // namespace dais::nn
