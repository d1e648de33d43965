// Losses and optimisers against what PyTorch gave (tests/golden/train_formulas.json).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "autodiff/autodiff.h"
#include "ir/call.h"
#include "train/losses.h"
#include "train/optimisers.h"

namespace dais::train {
namespace {

using nlohmann::json;

const json& golden() {
  static const json all = json::parse(std::ifstream("tests/golden/train_formulas.json"));
  return all;
}

std::vector<float> floats(const json& list) {
  std::vector<float> out;
  for (const json& value : list) out.push_back(value.get<float>());
  return out;
}

Tensor tensor(const json& list, const std::vector<int64_t>& shape) {
  return Tensor::of<float>(Shape(shape), std::span<const float>(floats(list)));
}

void expect_near(const Tensor& found, const json& wanted, double tolerance) {
  ASSERT_EQ(static_cast<size_t>(found.elements()), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(found.to_double(static_cast<int64_t>(i)), wanted[i].get<double>(), tolerance)
        << "element " << i;
}

LossOptions loss_options(const json& one) {
  LossOptions out;
  out.kind = loss_from_name(one["kind"].get<std::string>());
  const json& o = one["options"];
  out.label_smoothing = o.value("label_smoothing", 0.0);
  out.delta = o.value("delta", 1.0);
  if (o.contains("class_weights")) out.class_weights = floats(o["class_weights"]);
  return out;
}

TEST(Formulas, LossesAndTheirGradientsAreThoseOfPyTorch) {
  for (const json& one : golden()["losses"]) {
    SCOPED_TRACE(one["kind"].get<std::string>() + " " + one["options"].dump());
    const Tensor scores = tensor(one["scores"], one["shape"].get<std::vector<int64_t>>());
    const auto target_shape = one["target_shape"].get<std::vector<int64_t>>();
    Tensor target;
    if (one["whole"].get<bool>()) {
      const auto numbers = one["target"].get<std::vector<int64_t>>();
      target = Tensor::of<int64_t>(Shape(target_shape), std::span<const int64_t>(numbers));
    } else {
      target = tensor(one["target"], target_shape);
    }
    Graph g;
    LossInputs in;
    in.outputs = {g.add_input(Type::of(scores), "scores")};
    in.target = g.add_input(Type::of(target), "target");
    std::vector<Datum> inputs{scores, target};
    in.input = in.outputs[0];
    if (one.contains("input_lengths"))
      for (const char* name : {"input_lengths", "target_lengths"}) {
        const auto lengths = one[name].get<std::vector<int64_t>>();
        inputs.emplace_back(Tensor::ints(lengths));
        in.by_name(name) = g.add_input(Type::of(inputs.back().tensor), name);
      }
    Value* loss = add_loss(g, loss_options(one), in);
    const Values wrt = in.outputs;
    const Values gradients = append_gradients(g, loss, wrt);
    g.outputs = {loss, gradients[0]};
    g.verify();
    const auto results = evaluate(g, inputs);
    EXPECT_NEAR(results[0].tensor.to_double(), one["loss"].get<double>(),
                2e-6 * std::max(1.0, std::fabs(one["loss"].get<double>())));
    expect_near(results[1].tensor, one["gradient"], 1e-6);
  }
}

OptimiserOptions optimiser_options(const json& one) {
  OptimiserOptions out;
  const std::string name = one["name"].get<std::string>();
  out.kind = optimiser_from_name(name.substr(0, name.find(' ')));
  const json& o = one["options"];
  out.momentum = o.value("momentum", 0.0);
  out.dampening = o.value("dampening", 0.0);
  out.nesterov = o.value("nesterov", 0) != 0;
  out.centered = o.value("centered", 0) != 0;
  out.rate_decay = o.value("rate_decay", 0.0);
  out.beta1 = o.value("beta1", 0.9);
  out.beta2 = o.value("beta2", 0.999);
  out.clip_norm = o.value("clip_norm", 0.0);
  out.clip_value = o.value("clip_value", 0.0);
  if (o.contains("rho")) out.rho = o["rho"].get<double>();
  if (o.contains("weight_decay")) out.weight_decay = o["weight_decay"].get<double>();
  return out;
}

/// A graph with one parameter [2, 3] whose gradient is an input.
struct Single {
  Graph g;
  Updates updates;
  explicit Single(const OptimiserOptions& options) {
    const Type type = Type::tensor(DType::f32, Dims{2, 3});
    Value* x = g.add_input(type, "x");
    Value* gradient = g.add_input(type, "gradient");
    Value* rate = g.add_input(Type::tensor(DType::f32, Dims{}), "rate");
    Value* step = g.add_input(Type::tensor(DType::i64, Dims{}), "step");
    Value* apply = g.add_input(Type::tensor(DType::boolean, Dims{}), "apply");
    updates = add_updates(g, options, {{"x", x, gradient}}, {rate, step, apply});
    for (const StateEntry& entry : updates.states) g.outputs.push_back(entry.after);
    g.verify();
  }
  /// x and moments after a step from `states`.
  std::vector<Tensor> run(const std::vector<Tensor>& states, const Tensor& gradient, int64_t step,
                          bool apply = true) {
    std::vector<Datum> inputs{states[0], gradient, Tensor::scalar(0.1f), Tensor::scalar(step),
                              Tensor::scalar(apply)};
    inputs.insert(inputs.end(), states.begin() + 1, states.end());
    std::vector<Tensor> out;
    for (const Datum& datum : evaluate(g, inputs)) out.push_back(datum.tensor);
    return out;
  }
  std::vector<Tensor> start(const Tensor& x) const {
    std::vector<Tensor> out{x};
    for (size_t i = 1; i < updates.states.size(); ++i)
      out.push_back(updates.states[i].starts_as.empty() ? updates.states[i].initial : x);
    return out;
  }
};

TEST(Formulas, OptimisersStepAsThoseOfPyTorch) {
  const json& all = golden()["optimisers"];
  for (const json& one : all["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    Single single(optimiser_options(one));
    auto states = single.start(tensor(all["start"], {2, 3}));
    for (size_t step = 0; step < one["steps"].size(); ++step) {
      states =
          single.run(states, tensor(all["gradients"][step], {2, 3}), static_cast<int64_t>(step));
      expect_near(states[0], one["steps"][step], 2e-6);
    }
  }
}

TEST(Formulas, LambScalesByTheRatioOfNorms) {
  OptimiserOptions options;
  options.kind = OptimiserKind::lamb;
  options.weight_decay = 0;
  Single single(options);
  const json& all = golden()["optimisers"];
  const Tensor x = tensor(all["start"], {2, 3});
  const auto after = single.run(single.start(x), tensor(all["gradients"][0], {2, 3}), 0);
  // The first direction is the sign of the gradient (up to epsilon): its norm is sqrt(6).
  double norm = 0;
  for (int64_t i = 0; i < 6; ++i) norm += x.to_double(i) * x.to_double(i);
  const double ratio = std::sqrt(norm) / std::sqrt(6.0);
  for (int64_t i = 0; i < 6; ++i) {
    const double sign = all["gradients"][0][static_cast<size_t>(i)].get<double>() > 0 ? 1 : -1;
    EXPECT_NEAR(after[0].to_double(i), x.to_double(i) - 0.1 * ratio * sign, 1e-5);
  }
}

TEST(Formulas, BiasesAndNormsDecayOnlyWhenTold) {
  for (const bool all : {false, true}) {
    OptimiserOptions options;
    options.weight_decay = 0.5;
    options.decay_all = all;
    Graph g;
    const Type type = Type::tensor(DType::f32, Dims{2});
    Value* x = g.add_input(type, "x");
    Value* gradient = g.add_input(type, "gradient");
    Value* rate = g.add_input(Type::tensor(DType::f32, Dims{}), "rate");
    Value* step = g.add_input(Type::tensor(DType::i64, Dims{}), "step");
    Value* apply = g.add_input(Type::tensor(DType::boolean, Dims{}), "apply");
    const Updates updates = add_updates(g, options, {{"x", x, gradient}}, {rate, step, apply});
    g.outputs = {updates.states[0].after};
    const Tensor one = Tensor::of<float>({2}, {1, 1}), zero = Tensor::of<float>({2}, {0, 0});
    const auto out =
        evaluate(g, std::vector<Datum>{one, zero, Tensor::scalar(0.1f), Tensor::scalar<int64_t>(0),
                                       Tensor::scalar(true)});
    EXPECT_NEAR(out[0].tensor.to_double(), all ? 0.95 : 1, 1e-6);
  }
}

TEST(Formulas, NotFiniteGradientsChangeNothing) {
  OptimiserOptions options;
  options.kind = OptimiserKind::adam;
  options.ema = 0.9;
  Single single(options);
  const json& all = golden()["optimisers"];
  const Tensor x = tensor(all["start"], {2, 3});
  const auto start = single.start(x);
  Tensor bad = tensor(all["gradients"][0], {2, 3}).clone();
  bad.data<float>()[4] = NAN;
  const auto after = single.run(start, bad, 0);
  for (size_t i = 0; i < start.size(); ++i) EXPECT_TRUE(after[i].identical(start[i]));
  const auto held = single.run(start, tensor(all["gradients"][0], {2, 3}), 0, false);
  for (size_t i = 0; i < start.size(); ++i) EXPECT_TRUE(held[i].identical(start[i]));
}

}  // namespace
}  // namespace dais::train
