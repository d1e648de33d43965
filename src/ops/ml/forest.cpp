#include "ops/ml/forest.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ops/elementwise/elements.h"

namespace dais {
namespace {

[[noreturn]] void broken(const std::string& problem) {
  throw Error(Code::invalid_model, "trees: " + problem);
}

void check_length(const char* name, size_t length, size_t wanted) {
  if (length != wanted)
    broken(std::string(name) + " has " + std::to_string(length) + " entries, " +
           std::to_string(wanted) + " are needed");
}

int64_t checked(int64_t index, size_t limit, const char* what) {
  if (index < 0 || index >= static_cast<int64_t>(limit))
    broken(std::string(what) + " " + std::to_string(index) + " is not one of " +
           std::to_string(limit));
  return index;
}

std::vector<double> numbers(const Tensor& tensor) {
  return tensor ? widen<double>(tensor) : std::vector<double>{};
}

}  // namespace

void Forest::add_feature(Node& node, int64_t feature) {
  if (feature < 0) broken("feature " + std::to_string(feature) + " is negative");
  node.feature = feature;
  features_ = std::max(features_, feature + 1);
}

/// Sets stand one after the other, each ended by NaN, in the order of the member nodes.
void Forest::read_members(const Tensor& values) {
  members_ = numbers(values);
  size_t at = 0;
  for (Node& node : nodes_) {
    if (node.test != Test::member) continue;
    node.first_member = at;
    while (at < members_.size() && members_[at] == members_[at]) ++at;
    if (at == members_.size()) broken("membership_values end before the last set does");
    node.last_member = at++;
  }
}

Forest::Forest(const TreeEnsemble& a) {
  const size_t count = a.nodes_featureids.size();
  const auto modes = a.nodes_modes ? a.nodes_modes.to_ints() : std::vector<int64_t>{};
  const auto splits = numbers(a.nodes_splits), weights = numbers(a.leaf_weights);
  check_length("nodes_modes", modes.size(), count);
  check_length("nodes_splits", splits.size(), count);
  check_length("nodes_truenodeids", a.nodes_truenodeids.size(), count);
  check_length("nodes_falsenodeids", a.nodes_falsenodeids.size(), count);
  check_length("nodes_trueleafs", a.nodes_trueleafs.size(), count);
  check_length("nodes_falseleafs", a.nodes_falseleafs.size(), count);
  check_length("leaf_weights", weights.size(), a.leaf_targetids.size());
  if (!a.nodes_missing_value_tracks_true.empty())
    check_length("nodes_missing_value_tracks_true", a.nodes_missing_value_tracks_true.size(),
                 count);
  for (size_t i = 0; i < weights.size(); ++i)
    leaves_.push_back({{checked(a.leaf_targetids[i],
                                static_cast<size_t>(std::max<int64_t>(a.n_targets, 0)), "target"),
                        weights[i]}});
  auto child = [&](int64_t id, bool leaf) {
    return leaf ? -1 - checked(id, leaves_.size(), "leaf") : checked(id, count, "node");
  };
  for (size_t i = 0; i < count; ++i) {
    Node node;
    add_feature(node, a.nodes_featureids[i]);
    node.test = static_cast<Test>(checked(modes[i], 7, "mode"));
    node.split = splits[i];
    node.missing_is_true =
        !a.nodes_missing_value_tracks_true.empty() && a.nodes_missing_value_tracks_true[i] != 0;
    node.true_child = child(a.nodes_truenodeids[i], a.nodes_trueleafs[i] != 0);
    node.false_child = child(a.nodes_falsenodeids[i], a.nodes_falseleafs[i] != 0);
    nodes_.push_back(node);
  }
  read_members(a.membership_values);
  for (const int64_t root : a.tree_roots) roots_.push_back(checked(root, count, "tree root"));
}

Forest::Forest(const TreeNodes& a, int64_t targets) {
  const size_t count = a.nodeids.size();
  const auto values = numbers(a.values), weights = numbers(a.output_weights);
  check_length("nodes_treeids", a.treeids.size(), count);
  check_length("nodes_featureids", a.featureids.size(), count);
  check_length("nodes_modes", a.modes.size(), count);
  check_length("nodes_values", values.size(), count);
  check_length("nodes_truenodeids", a.truenodeids.size(), count);
  check_length("nodes_falsenodeids", a.falsenodeids.size(), count);
  if (!a.missing_value_tracks_true.empty())
    check_length("nodes_missing_value_tracks_true", a.missing_value_tracks_true.size(), count);
  check_length("treeids of the outputs", a.output_treeids.size(), a.output_ids.size());
  check_length("nodeids of the outputs", a.output_nodeids.size(), a.output_ids.size());
  check_length("weights of the outputs", weights.size(), a.output_ids.size());
  const std::pair<std::string_view, Test> tests[] = {
      {"BRANCH_LEQ", Test::at_most}, {"BRANCH_LT", Test::below}, {"BRANCH_GTE", Test::at_least},
      {"BRANCH_GT", Test::above},    {"BRANCH_EQ", Test::equal}, {"BRANCH_NEQ", Test::unequal}};
  std::map<std::pair<int64_t, int64_t>, int64_t> places;  // (tree, node) to node or -1 - leaf
  std::vector<size_t> branches;
  for (size_t i = 0; i < count; ++i) {
    const bool leaf = a.modes[i] == "LEAF";
    if (leaf) leaves_.emplace_back();
    if (!leaf) branches.push_back(i);
    const int64_t place =
        leaf ? -static_cast<int64_t>(leaves_.size()) : static_cast<int64_t>(branches.size()) - 1;
    if (!places.emplace(std::pair(a.treeids[i], a.nodeids[i]), place).second)
      broken("tree " + std::to_string(a.treeids[i]) + " has node " + std::to_string(a.nodeids[i]) +
             " twice");
    // A tree starts at its first node.
    if (i == 0 || a.treeids[i] != a.treeids[i - 1]) roots_.push_back(place);
  }
  auto place = [&](int64_t tree, int64_t node) {
    const auto found = places.find({tree, node});
    if (found == places.end())
      broken("tree " + std::to_string(tree) + " has no node " + std::to_string(node));
    return found->second;
  };
  for (const size_t i : branches) {
    Node node;
    add_feature(node, a.featureids[i]);
    const auto* test = std::find_if(std::begin(tests), std::end(tests),
                                    [&](const auto& known) { return known.first == a.modes[i]; });
    if (test == std::end(tests)) broken("node mode '" + a.modes[i] + "' is not known");
    node.test = test->second;
    node.split = values[i];
    node.missing_is_true =
        !a.missing_value_tracks_true.empty() && a.missing_value_tracks_true[i] != 0;
    node.true_child = place(a.treeids[i], a.truenodeids[i]);
    node.false_child = place(a.treeids[i], a.falsenodeids[i]);
    nodes_.push_back(node);
  }
  for (size_t i = 0; i < a.output_ids.size(); ++i) {
    const int64_t at = place(a.output_treeids[i], a.output_nodeids[i]);
    // Weights on branches are never reached.
    if (at >= 0) continue;
    leaves_[static_cast<size_t>(-1 - at)].push_back(
        {checked(a.output_ids[i], static_cast<size_t>(std::max<int64_t>(targets, 0)), "output"),
         weights[i]});
  }
}

bool Forest::weights_never_negative() const {
  for (const Leaf& leaf : leaves_)
    for (const Part& part : leaf)
      if (part.weight < 0) return false;
  return true;
}

bool Forest::passes(const Node& node, double x) const {
  if (x != x) return node.missing_is_true || node.test == Test::unequal;
  switch (node.test) {
    case Test::at_most: return x <= node.split;
    case Test::below: return x < node.split;
    case Test::at_least: return x >= node.split;
    case Test::above: return x > node.split;
    case Test::equal: return x == node.split;
    case Test::unequal: return x != node.split;
    case Test::member: break;
  }
  const auto first = members_.begin() + static_cast<ptrdiff_t>(node.first_member),
             last = members_.begin() + static_cast<ptrdiff_t>(node.last_member);
  return std::find(first, last, x) != last;
}

size_t Forest::find_leaf(int64_t node, std::span<const double> row) const {
  for (size_t steps = 0; node >= 0; ++steps) {
    if (steps > nodes_.size()) broken("nodes lead in a circle");
    const Node& at = nodes_[static_cast<size_t>(node)];
    node = passes(at, row[static_cast<size_t>(at.feature)]) ? at.true_child : at.false_child;
  }
  return static_cast<size_t>(-1 - node);
}

}  // namespace dais
