#include "ops/ml/ml.h"

#include <gtest/gtest.h>

#include "ir/call.h"
#include "ops/ml/forest.h"

namespace dais {
namespace {

template <typename Struct>
std::vector<Datum> run(Struct attrs, const Tensor& x, size_t outputs = 1) {
  Graph graph;
  graph.outputs =
      graph.add_node(std::move(attrs), {graph.add_input(Type::of(x), "x")}, outputs).outs;
  const Datum input(x);
  auto out = evaluate(graph, std::span(&input, 1));
  for (size_t i = 0; i < outputs; ++i)
    if (out[i].kind == Datum::Kind::tensor) {
      EXPECT_EQ(graph.outputs[i]->type, Type::of(out[i].tensor));
    }
  return out;
}

template <typename T>
Tensor list(std::initializer_list<T> values) {
  return Tensor::of<T>(Shape{static_cast<int64_t>(values.size())}, values);
}

/// One split: x[0] <= 1 adds 0.25, else 0.75, to output 0.
template <typename Struct>
Struct stump() {
  Struct out;
  out.treeids = {0, 0, 0};
  out.nodeids = {0, 1, 2};
  out.featureids = {0, 0, 0};
  out.modes = {"BRANCH_LEQ", "LEAF", "LEAF"};
  out.values = list<float>({1, 0, 0});
  out.truenodeids = {1, 0, 0};
  out.falsenodeids = {2, 0, 0};
  out.output_treeids = {0, 0};
  out.output_nodeids = {1, 2};
  out.output_ids = {0, 0};
  out.output_weights = list<float>({0.25f, 0.75f});
  return out;
}

TEST(Trees, RegressionAddsBaseValues) {
  auto attrs = stump<TreeEnsembleRegressor>();
  attrs.base_values = list<float>({10});
  const Tensor x = Tensor::of<float>({3, 1}, {0, 2, std::nanf("")});
  EXPECT_TRUE(
      run(attrs, x)[0].tensor.identical(Tensor::of<float>({3, 1}, {10.25f, 10.75f, 10.75f})));
  attrs.missing_value_tracks_true = {1, 0, 0};
  EXPECT_EQ(run(attrs, x)[0].tensor.data<float>()[2], 10.25f);
}

TEST(Trees, OneScoreServesTwoClasses) {
  auto attrs = stump<TreeEnsembleClassifier>();
  attrs.classlabels_strings = {"no", "yes"};
  const auto out = run(attrs, Tensor::of<float>({2, 1}, {0, 2}), 2);
  EXPECT_TRUE(out[0].tensor.identical(Tensor::of<std::string>({2}, {"no", "yes"})));
  EXPECT_TRUE(out[1].tensor.identical(Tensor::of<float>({2, 2}, {0.75f, 0.25f, 0.25f, 0.75f})));
}

TEST(Trees, BrokenTreesAreRefused) {
  const Tensor x = Tensor::of<float>({1, 1}, {0});
  auto circle = stump<TreeEnsembleRegressor>();
  circle.truenodeids[0] = 0;
  EXPECT_THROW(run(circle, x), Error);
  auto nowhere = stump<TreeEnsembleRegressor>();
  nowhere.falsenodeids[0] = 7;
  EXPECT_THROW(run(nowhere, x), Error);
  auto narrow = stump<TreeEnsembleRegressor>();
  narrow.featureids[0] = 5;
  EXPECT_THROW(run(narrow, x), Error);
  auto target = stump<TreeEnsembleRegressor>();
  target.output_ids = {0, 3};
  EXPECT_THROW(run(target, x), Error);
}

TEST(MachineLearning, LabelsFindMissingNumbers) {
  LabelEncoder attrs;
  attrs.keys = list<float>({1.5f, std::nanf("")});
  attrs.values = list<std::string>({"a", "b"});
  attrs.fallback = Tensor::scalar<std::string>("?");
  EXPECT_TRUE(run(attrs, list<float>({std::nanf(""), 1.5f, 3}))[0].tensor.identical(
      list<std::string>({"b", "a", "?"})));
}

TEST(MachineLearning, LinearModels) {
  const Tensor x = Tensor::of<float>({2, 2}, {1, 2, 3, -4});
  LinearRegressor regressor;
  regressor.coefficients = {1, 1, 0, 2};
  regressor.intercepts = {0.5f, 0};
  regressor.targets = 2;
  EXPECT_TRUE(
      run(regressor, x)[0].tensor.identical(Tensor::of<float>({2, 2}, {3.5f, 4, -0.5f, -8})));
  LinearClassifier classifier;
  classifier.coefficients = {1, 1};
  classifier.classlabels_ints = {7, 9};
  classifier.post_transform = "LOGISTIC";
  const auto out = run(classifier, x, 2);
  EXPECT_TRUE(out[0].tensor.identical(list<int64_t>({9, 7})));
  EXPECT_FLOAT_EQ(out[1].tensor.data<float>()[1], 1 / (1 + std::exp(-3.0f)));
}

TEST(MachineLearning, SupportVectorsVoteByPairs) {
  SVMClassifier attrs;
  attrs.classlabels_ints = {3, 4};
  attrs.vectors_per_class = {1, 1};
  attrs.support_vectors = {0, 2};
  attrs.coefficients = {1, -1};
  attrs.kernel_type = "RBF";
  attrs.kernel_params = {1, 0, 0};
  attrs.rho = {0};
  const auto out = run(attrs, Tensor::of<float>({2, 1}, {0, 2}), 2);
  EXPECT_TRUE(out[0].tensor.identical(list<int64_t>({3, 4})));
  attrs.prob_a = {-2};
  attrs.prob_b = {0};
  const Tensor scores = run(attrs, Tensor::of<float>({1, 1}, {0}), 2)[1].tensor;
  const auto chances = scores.data<float>();
  EXPECT_NEAR(chances[0] + chances[1], 1, 1e-5);
  EXPECT_NEAR(chances[0], 1 / (1 + std::exp(-2 * (1 - std::exp(-4.0f)))), 2e-2);
}

TEST(MachineLearning, ScoresBecomeMaps) {
  ZipMap attrs;
  attrs.classlabels_strings = {"x", "y"};
  const auto out = run(attrs, Tensor::of<float>({1, 2}, {0.25f, 0.5f}));
  ASSERT_EQ(out[0].kind, Datum::Kind::sequence);
  EXPECT_TRUE((*out[0].items)[0].tensor.identical(list<std::string>({"x", "y"})));
}

}  // namespace
}  // namespace dais
