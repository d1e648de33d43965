#include "ops/ml/tree.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/onnx_export.h"
#include "ir/onnx_import.h"
#include "ops/elementwise/elements.h"
#include "ops/ml/forest.h"
#include "ops/ml/scores.h"

namespace dais {
namespace {

enum class Aggregate : uint8_t { average, sum, min, max };

std::optional<Aggregate> aggregate_of(std::string_view name) {
  if (name == "AVERAGE") return Aggregate::average;
  if (name == "SUM") return Aggregate::sum;
  if (name == "MIN") return Aggregate::min;
  if (name == "MAX") return Aggregate::max;
  return std::nullopt;
}

/// Combined leaf weights of one row for each target; zero where no leaf adds anything.
std::vector<double> combined(const Forest& forest, std::span<const double> row, int64_t targets,
                             Aggregate how) {
  std::vector<double> out(static_cast<size_t>(targets), 0);
  std::vector<bool> seen(out.size(), false);
  forest.walk(row, [&](int64_t target, double weight) {
    const auto at = static_cast<size_t>(target);
    if (!seen[at])
      out[at] = weight;
    else if (how == Aggregate::min)
      out[at] = std::min(out[at], weight);
    else if (how == Aggregate::max)
      out[at] = std::max(out[at], weight);
    else
      out[at] += weight;
    seen[at] = true;
  });
  if (how == Aggregate::average)
    for (double& value : out) value /= static_cast<double>(forest.trees());
  return out;
}

void check_width(Call& c, const Forest& forest, const Rows& rows) {
  if (rows.width < forest.features())
    c.fail("x has " + std::to_string(rows.width) + " features, the trees ask for " +
           std::to_string(forest.features()));
}

void regress(Call& c, const Forest& forest, int64_t targets, Aggregate how, PostTransform transform,
             std::span<const double> base, DType dtype) {
  const Rows rows = rows_of(c, 0);
  check_width(c, forest, rows);
  Tensor& y = c.out(0, dtype, Shape{rows.count, targets});
  for (int64_t i = 0; i < rows.count; ++i) {
    auto scores = combined(forest, rows.row(i), targets, how);
    for (size_t k = 0; k < scores.size() && k < base.size(); ++k) scores[k] += base[k];
    transform_scores(transform, scores);
    store_elements(y, i * targets, 1, targets, scores.data());
  }
}

void infer_ensemble(Inference& c) {
  const TreeEnsemble& attrs = c.attrs<TreeEnsemble>();
  const DType dtype = c.dtype(0);
  if (!is_float(dtype)) c.fail("x is " + std::string(dtype_name(dtype)) + ", not a float type");
  if (attrs.n_targets < 1 || attrs.aggregate_function < 0 || attrs.aggregate_function > 3 ||
      attrs.post_transform < 0 || attrs.post_transform > 4)
    c.fail("n_targets, aggregate_function or post_transform is out of range");
  c.set(0, dtype);
  c.set(0, dtype, Dims{count_rows(c, 0), attrs.n_targets});
}

void reference_ensemble(Call& c) {
  const TreeEnsemble& attrs = c.attrs<TreeEnsemble>();
  regress(c, Forest(attrs), attrs.n_targets, static_cast<Aggregate>(attrs.aggregate_function),
          static_cast<PostTransform>(attrs.post_transform), {}, c.in(0).dtype());
}

std::vector<double> base_values(const TreeNodes& attrs) {
  return attrs.base_values ? widen<double>(attrs.base_values) : std::vector<double>{};
}

void infer_regressor(Inference& c) {
  const auto& attrs = c.attrs<TreeEnsembleRegressor>();
  check_post_transform(c, attrs.post_transform);
  if (!aggregate_of(attrs.aggregate_function))
    c.fail("aggregate_function is '" + attrs.aggregate_function + "'",
           "Use SUM, AVERAGE, MIN or MAX");
  if (attrs.n_targets < 1) c.fail("n_targets is less than 1");
  c.set(0, DType::f32);
  c.set(0, DType::f32, Dims{count_rows(c, 0), attrs.n_targets});
}

void reference_regressor(Call& c) {
  const auto& attrs = c.attrs<TreeEnsembleRegressor>();
  regress(c, Forest(attrs, attrs.n_targets), attrs.n_targets,
          *aggregate_of(attrs.aggregate_function), *post_transform_of(attrs.post_transform),
          base_values(attrs), DType::f32);
}

Labels labels_of(const TreeEnsembleClassifier& attrs) {
  return {attrs.classlabels_int64s, attrs.classlabels_strings};
}

/// Two classes of which the leaves score one only: the other's score follows from it.
bool is_binary(const TreeEnsembleClassifier& attrs) {
  for (const int64_t id : attrs.output_ids)
    if (id != attrs.output_ids.front()) return false;
  return labels_of(attrs).size() <= 2 && !attrs.output_ids.empty();
}

void infer_classifier(Inference& c) {
  const auto& attrs = c.attrs<TreeEnsembleClassifier>();
  check_post_transform(c, attrs.post_transform);
  const Labels labels = labels_of(attrs);
  if (labels.size() == 0) c.fail("no class labels are given");
  c.set(0, labels.dtype());
  c.set(1, DType::f32);
  const Dim rows = count_rows(c, 0);
  c.set(0, labels.dtype(), Dims{rows});
  c.set(1, DType::f32, Dims{rows, static_cast<int64_t>(is_binary(attrs) ? 2 : labels.size())});
}

/// Scores of both classes from the one that the leaves give; true for the second class. Weights
/// that are never negative are probabilities.
bool binary_scores(double score, bool probabilities, PostTransform transform,
                   std::vector<double>& scores) {
  if (probabilities) {
    scores = {1 - score, score};
    return score > 0.5;
  }
  scores = {-score, score};
  transform_scores(transform, scores);
  return score > 0;
}

void reference_classifier(Call& c) {
  const auto& attrs = c.attrs<TreeEnsembleClassifier>();
  const Labels labels = labels_of(attrs);
  const bool binary = is_binary(attrs);
  const auto classes = static_cast<int64_t>(std::max(labels.size(), size_t{2}));
  const Forest forest(attrs, classes);
  const PostTransform transform = *post_transform_of(attrs.post_transform);
  const auto base = base_values(attrs);
  const Rows rows = rows_of(c, 0);
  check_width(c, forest, rows);
  const int64_t columns = binary ? 2 : static_cast<int64_t>(labels.size());
  Tensor& label = c.out(0, labels.dtype(), Shape{rows.count});
  Tensor discarded;
  if (c.outputs() < 2) discarded = Tensor(DType::f32, Shape{rows.count, columns});
  Tensor& y = c.outputs() < 2 ? discarded : c.out(1, DType::f32, Shape{rows.count, columns});
  const bool probabilities = forest.weights_never_negative();
  for (int64_t i = 0; i < rows.count; ++i) {
    auto scores = combined(forest, rows.row(i), classes, Aggregate::sum);
    size_t chosen = 0;
    if (binary) {
      const double start = base.empty() ? 0 : base[std::min(base.size() - 1, size_t{1})];
      chosen = binary_scores(start + scores[static_cast<size_t>(attrs.output_ids.front())],
                             probabilities, transform, scores);
    } else {
      scores.resize(static_cast<size_t>(columns));
      for (size_t k = 0; k < scores.size() && k < base.size(); ++k) scores[k] += base[k];
      chosen = static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
      transform_scores(transform, scores);
    }
    labels.write(chosen, label, static_cast<size_t>(i));
    store_elements(y, i * columns, 1, columns, scores.data());
  }
}

/// A list of floats, or the tensor that takes its place in version 3.
Tensor numbers_attribute(const OnnxImport& i, const std::string& name) {
  if (const AttrValue* value = i.attribute(name + "_as_tensor"))
    if (const auto* tensor = std::get_if<Tensor>(value)) return *tensor;
  const auto floats = i.numbers(name);
  if (floats.empty()) return {};
  return Tensor::of<float>(Shape{static_cast<int64_t>(floats.size())},
                           std::span<const float>(floats));
}

void read_trees(const OnnxImport& i, const std::string& outputs, TreeNodes& trees) {
  trees.base_values = numbers_attribute(i, "base_values");
  trees.output_ids = i.integers(outputs + "_ids");
  trees.output_nodeids = i.integers(outputs + "_nodeids");
  trees.output_treeids = i.integers(outputs + "_treeids");
  trees.output_weights = numbers_attribute(i, outputs + "_weights");
  trees.falsenodeids = i.integers("nodes_falsenodeids");
  trees.featureids = i.integers("nodes_featureids");
  trees.missing_value_tracks_true = i.integers("nodes_missing_value_tracks_true");
  if (const AttrValue* modes = i.attribute("nodes_modes"))
    if (const auto* list = std::get_if<std::vector<std::string>>(modes)) trees.modes = *list;
  trees.nodeids = i.integers("nodes_nodeids");
  trees.treeids = i.integers("nodes_treeids");
  trees.truenodeids = i.integers("nodes_truenodeids");
  trees.values = numbers_attribute(i, "nodes_values");
}

Values import_classifier(OnnxImport& i) {
  auto attrs = i.attrs<TreeEnsembleClassifier>();
  read_trees(i, "class", attrs);
  return i.emit(std::move(attrs), i.in);
}

Values import_regressor(OnnxImport& i) {
  TreeEnsembleRegressor attrs;
  attrs.aggregate_function = i.text("aggregate_function", "SUM");
  attrs.n_targets = i.integer("n_targets", 1);
  attrs.post_transform = i.text("post_transform", "NONE");
  read_trees(i, "target", attrs);
  return i.emit(std::move(attrs), i.in);
}

/// The way back of read_trees: our field names to those of version 3.
OnnxNode export_trees(const Node& node, const std::string& outputs) {
  static const std::set<std::string> of_nodes = {
      "falsenodeids", "featureids", "missing_value_tracks_true", "modes", "nodeids", "treeids",
      "truenodeids",  "values"};
  OnnxNode out{.type = {}, .in = node.in};
  for (auto& [name, value] : stated_attributes(node)) {
    std::string wanted = of_nodes.contains(name) ? "nodes_" + name : name;
    if (name.starts_with("output_")) wanted = outputs + name.substr(std::string("output").size());
    const auto* tensor = std::get_if<Tensor>(&value);
    if (tensor && tensor->dtype() == DType::f32) {
      const auto numbers = tensor->data<float>();
      out.attributes.emplace_back(wanted, std::vector<float>(numbers.begin(), numbers.end()));
    } else {
      out.attributes.emplace_back(tensor ? wanted + "_as_tensor" : wanted, std::move(value));
    }
  }
  return out;
}

OnnxNode export_classifier(const Node& node, int64_t) { return export_trees(node, "class"); }
OnnxNode export_regressor(const Node& node, int64_t) { return export_trees(node, "target"); }

}  // namespace

const Op TreeEnsemble::op{
    .name = "tree_ensemble",
    .attrs = &AttrsOf<TreeEnsemble>::info,
    .infer = infer_ensemble,
    .reference = reference_ensemble,
    .onnx = {{.type = "TreeEnsemble", .since = 5, .domain = "ai.onnx.ml"}},
};
const Op TreeEnsembleClassifier::op{
    .name = "tree_ensemble_classifier",
    .attrs = &AttrsOf<TreeEnsembleClassifier>::info,
    .infer = infer_classifier,
    .reference = reference_classifier,
    .onnx = {{.type = "TreeEnsembleClassifier",
              .domain = "ai.onnx.ml",
              .import = import_classifier,
              .export_as = export_classifier}},
};
const Op TreeEnsembleRegressor::op{
    .name = "tree_ensemble_regressor",
    .attrs = &AttrsOf<TreeEnsembleRegressor>::info,
    .infer = infer_regressor,
    .reference = reference_regressor,
    .onnx = {{.type = "TreeEnsembleRegressor",
              .domain = "ai.onnx.ml",
              .import = import_regressor,
              .export_as = export_regressor}},
};

void define_trees(OpRegistry& registry) {
  for (const Op* op : {&TreeEnsemble::op, &TreeEnsembleClassifier::op, &TreeEnsembleRegressor::op})
    registry.add(*op);
}

}  // namespace dais
