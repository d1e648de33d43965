#pragma once

#include "ir/op.h"

namespace dais {

/// Decision trees in the form of ai.onnx.ml version 5: nodes by index, children that are nodes or
/// leaves, leaves with one target and weight. x: [N, F] → [N, n_targets] of x's type.
struct TreeEnsemble {
  int64_t aggregate_function = 1;  ///< 0 average, 1 sum, 2 minimum, 3 maximum
  std::vector<int64_t> leaf_targetids;
  Tensor leaf_weights;
  Tensor membership_values;  ///< sets of the member nodes in order, each ended by NaN
  int64_t n_targets = 1;
  std::vector<int64_t> nodes_falseleafs, nodes_falsenodeids, nodes_featureids;
  Tensor nodes_hitrates;
  std::vector<int64_t> nodes_missing_value_tracks_true;
  Tensor nodes_modes;  ///< 0 ≤, 1 <, 2 ≥, 3 >, 4 =, 5 ≠, 6 member of a set
  Tensor nodes_splits;
  std::vector<int64_t> nodes_trueleafs, nodes_truenodeids;
  int64_t post_transform = 0;  ///< 0 none, 1 softmax, 2 logistic, 3 softmax_zero, 4 probit
  std::vector<int64_t> tree_roots;
  static constexpr auto fields = std::tuple{
      field("aggregate_function", &TreeEnsemble::aggregate_function),
      field("leaf_targetids", &TreeEnsemble::leaf_targetids),
      field("leaf_weights", &TreeEnsemble::leaf_weights),
      field("membership_values", &TreeEnsemble::membership_values),
      field("n_targets", &TreeEnsemble::n_targets),
      field("nodes_falseleafs", &TreeEnsemble::nodes_falseleafs),
      field("nodes_falsenodeids", &TreeEnsemble::nodes_falsenodeids),
      field("nodes_featureids", &TreeEnsemble::nodes_featureids),
      field("nodes_hitrates", &TreeEnsemble::nodes_hitrates),
      field("nodes_missing_value_tracks_true", &TreeEnsemble::nodes_missing_value_tracks_true),
      field("nodes_modes", &TreeEnsemble::nodes_modes),
      field("nodes_splits", &TreeEnsemble::nodes_splits),
      field("nodes_trueleafs", &TreeEnsemble::nodes_trueleafs),
      field("nodes_truenodeids", &TreeEnsemble::nodes_truenodeids),
      field("post_transform", &TreeEnsemble::post_transform),
      field("tree_roots", &TreeEnsemble::tree_roots)};
  static const Op op;
};

/// The form of versions 1 and 3: nodes named by tree and number, leaves that add to any number of
/// outputs. The import puts tensor attributes (…_as_tensor) in the place of lists.
struct TreeNodes {
  Tensor base_values;
  std::vector<int64_t> output_ids, output_nodeids, output_treeids;
  Tensor output_weights;
  std::vector<int64_t> falsenodeids, featureids, missing_value_tracks_true;
  std::vector<std::string> modes;
  std::vector<int64_t> nodeids, treeids, truenodeids;
  Tensor values;
};

/// → labels [N] and scores [N, classes] (f32).
struct TreeEnsembleClassifier : TreeNodes {
  std::vector<int64_t> classlabels_int64s;
  std::vector<std::string> classlabels_strings;
  std::string post_transform = "NONE";
  static constexpr auto fields =
      std::tuple{field("base_values", &TreeNodes::base_values),
                 field("output_ids", &TreeNodes::output_ids),
                 field("output_nodeids", &TreeNodes::output_nodeids),
                 field("output_treeids", &TreeNodes::output_treeids),
                 field("output_weights", &TreeNodes::output_weights),
                 field("falsenodeids", &TreeNodes::falsenodeids),
                 field("featureids", &TreeNodes::featureids),
                 field("missing_value_tracks_true", &TreeNodes::missing_value_tracks_true),
                 field("modes", &TreeNodes::modes),
                 field("nodeids", &TreeNodes::nodeids),
                 field("treeids", &TreeNodes::treeids),
                 field("truenodeids", &TreeNodes::truenodeids),
                 field("values", &TreeNodes::values),
                 field("classlabels_int64s", &TreeEnsembleClassifier::classlabels_int64s),
                 field("classlabels_strings", &TreeEnsembleClassifier::classlabels_strings),
                 field("post_transform", &TreeEnsembleClassifier::post_transform)};
  static const Op op;
};

/// → [N, n_targets] (f32).
struct TreeEnsembleRegressor : TreeNodes {
  std::string aggregate_function = "SUM";  ///< or AVERAGE, MIN, MAX
  int64_t n_targets = 1;
  std::string post_transform = "NONE";
  static constexpr auto fields =
      std::tuple{field("base_values", &TreeNodes::base_values),
                 field("output_ids", &TreeNodes::output_ids),
                 field("output_nodeids", &TreeNodes::output_nodeids),
                 field("output_treeids", &TreeNodes::output_treeids),
                 field("output_weights", &TreeNodes::output_weights),
                 field("falsenodeids", &TreeNodes::falsenodeids),
                 field("featureids", &TreeNodes::featureids),
                 field("missing_value_tracks_true", &TreeNodes::missing_value_tracks_true),
                 field("modes", &TreeNodes::modes),
                 field("nodeids", &TreeNodes::nodeids),
                 field("treeids", &TreeNodes::treeids),
                 field("truenodeids", &TreeNodes::truenodeids),
                 field("values", &TreeNodes::values),
                 field("aggregate_function", &TreeEnsembleRegressor::aggregate_function),
                 field("n_targets", &TreeEnsembleRegressor::n_targets),
                 field("post_transform", &TreeEnsembleRegressor::post_transform)};
  static const Op op;
};

void define_trees(OpRegistry& registry);

}  // namespace dais
