#pragma once

#include <span>

#include "ops/ml/tree.h"

namespace dais {

/// Decision trees ready to be walked. Children are node numbers, or leaves as -1 - leaf.
class Forest {
 public:
  /// Both throw `invalid_model` when an index leads nowhere or the lists differ in length.
  explicit Forest(const TreeEnsemble& attrs);
  Forest(const TreeNodes& attrs, int64_t targets);

  /// Calls body(target, weight) for everything the row's leaves add. The row must hold at least
  /// `features()` numbers. Throws `invalid_model` when nodes lead in a circle.
  template <typename Body>
  void walk(std::span<const double> row, Body&& body) const {
    for (const int64_t root : roots_) {
      const Leaf& leaf = leaves_[find_leaf(root, row)];
      for (size_t i = 0; i < leaf.size(); ++i) body(leaf[i].target, leaf[i].weight);
    }
  }
  size_t trees() const { return roots_.size(); }
  int64_t features() const { return features_; }
  bool weights_never_negative() const;

 private:
  enum class Test : uint8_t { at_most, below, at_least, above, equal, unequal, member };
  struct Node {
    int64_t feature = 0;
    Test test = Test::at_most;
    bool missing_is_true = false;
    double split = 0;
    size_t first_member = 0, last_member = 0;
    int64_t true_child = 0, false_child = 0;
  };
  struct Part {
    int64_t target;
    double weight;
  };
  using Leaf = std::vector<Part>;

  size_t find_leaf(int64_t node, std::span<const double> row) const;
  bool passes(const Node& node, double x) const;
  void add_feature(Node& node, int64_t feature);
  void read_members(const Tensor& values);

  std::vector<Node> nodes_;
  std::vector<Leaf> leaves_;
  std::vector<double> members_;
  std::vector<int64_t> roots_;
  int64_t features_ = 0;
};

}  // namespace dais
