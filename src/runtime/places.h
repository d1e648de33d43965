#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "runtime/plan.h"

namespace dais {

/// Whether control flow with this body is worth the device: values visit the CPU on the way into it
/// and out of it, which products and the like pay for. Bodies inside it count.
bool holds_products(const Graph& body);

/// Decides which nodes of a plan's graph run on the device of its options: those that a row of the
/// device takes and whose sizes are known before a run. Without a device no node does.
class Places {
 public:
  /// `sizes` must know the symbols that inputs declare.
  Places(Graph& graph, const PlanOptions& options, SizeTable& sizes)
      : graph_(graph), options_(options), sizes_(sizes) {}

  /// Whether there is a device and the node's sizes are known before a run, so that a row could
  /// take it.
  bool device_could_run(const Node& node);
  /// Whether a row of the device takes the node as it stands.
  bool device_takes(const Node& node);
  /// Puts Copy nodes where a value is needed in the other place. Changes of nodes come before this.
  void insert_copies();
  bool on_device(const Node& node) const { return device_nodes_.contains(&node); }
  /// Whether an input of the graph lies on the device from run to run: a state that only the device
  /// reads and writes.
  bool resident(const Value* value) const { return resident_.contains(value); }
  /// Ops that run on the CPU although the plan has a device, with the rows' reasons.
  std::vector<std::string> warnings() const;

 private:
  bool planned(const Value* value);
  bool is_view(const Node& node);
  void place();
  void find_residents();
  bool value_on_device(const Value* value) const;
  Value* copied(Value* value, bool to_device, Node* before);

  Graph& graph_;
  const PlanOptions& options_;
  SizeTable& sizes_;
  std::unordered_set<const Node*> device_nodes_, views_;
  std::unordered_set<const Value*> resident_;
  std::unordered_map<const Value*, Value*> copies_;
  std::vector<const Node*> left_;  ///< on the CPU
};

}  // namespace dais
