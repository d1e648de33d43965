#pragma once

#include "ir/graph.h"

namespace dais {

/// One node in ONNX terms, as an OnnxRule's `export_as` describes it. Its outputs are those of the
/// graph node it stands for.
struct OnnxNode {
  struct Region {
    std::string attribute;
    const Graph* graph = nullptr;
    /// What the last inputs of `graph` stand for outside: they become names of the outer scope.
    Values captures = {};
  };
  std::string type, domain = {};
  Values in = {};
  std::vector<std::pair<std::string, AttrValue>> attributes = {};
  std::vector<std::pair<std::string, Type>> types = {};  ///< attributes that are types
  std::vector<Region> regions = {};
};

/// The attributes of a node that ONNX has to state: fields that are set and differ from their
/// defaults, and those marked as required.
std::vector<std::pair<std::string, AttrValue>> stated_attributes(const Node& node);

/// Refuses to write a node: `what` (a clause, "training") can be said from opset `since` on.
[[noreturn]] void no_form(const Node& node, const std::string& what, int64_t opset, int64_t since);

/// An `export_as` for ops whose `import` only checks or fills in: same inputs, stated attributes.
OnnxNode export_plainly(const Node& node, int64_t opset);

}  // namespace dais
