#pragma once

#include <functional>
#include <limits>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/attrs.h"

namespace dais {

class Graph;
class Value;
struct Node;
class Inference;
class Call;
class OnnxImport;
struct OnnxNode;
using Values = std::vector<Value*>;

/// What a node costs at known sizes; used by forecasts, `bench` and kernel rules.
struct Cost {
  double flops = 0;
  double bytes = 0;  ///< 0: inputs plus outputs
};

/// How one ONNX operator of one opset range becomes graph nodes. Without `import`, the node becomes
/// one node of the op that owns the rule: same inputs in order, attributes by field name.
struct OnnxRule {
  std::string_view type;
  int since = 1;
  int until = std::numeric_limits<int>::max();  ///< inclusive
  std::string_view domain = "";                 ///< "" is ai.onnx
  Values (*import)(OnnxImport&) = nullptr;      ///< one value per output; may be nullptr if unused
  /// The way back. Rules without `import` need none: same inputs, attributes by field name. A node
  /// whose op has neither is decomposed when it is written.
  OnnxNode (*export_as)(const Node&, int64_t opset) = nullptr;
};

/// The constant description of an operator. Our ops follow the newest ONNX version's inputs and
/// attributes; older versions are mapped to it on import.
struct Op {
  std::string_view name;                ///< snake_case, unique
  const AttrsInfo* attrs = nullptr;     ///< AttrsOf<TheStruct>::info
  void (*infer)(Inference&) = nullptr;  ///< sets every output's type; required
  /// Plain loops that any input of the op's domain can run through; null for composite ops.
  void (*reference)(Call&) = nullptr;
  /// The same function in simpler ops. May look at attributes, types and constants of the node.
  Values (*decompose)(Graph&, const Node&) = nullptr;
  /// Gradients of the inputs (nullptr: none) from those of the outputs, as new nodes.
  Values (*gradient)(Graph&, const Node&, std::span<Value* const> dy) = nullptr;
  Cost (*cost)(const Node&) = nullptr;
  std::vector<OnnxRule> onnx;
  /// False for random numbers and other ops whose result is not a function of their inputs: never
  /// folded, shared or removed by comparison.
  bool pure = true;
  /// Output 0 is input 0's elements in the same order (reshape, squeeze, identity): no copy needed.
  bool view = false;
};

/// All known ops and ONNX rules. Filled once by define_all_ops, then read only.
class OpRegistry {
 public:
  void add(const Op& op);
  /// A rule that belongs to no op of its own: the ONNX operator is built from others.
  void add_rule(const OnnxRule& rule);

  const Op* find(std::string_view name) const;
  const std::vector<const Op*>& ops() const { return ops_; }

  struct Match {
    const OnnxRule* rule = nullptr;
    const Op* op = nullptr;  ///< owner; null for rules added alone
  };
  /// The rule for an operator at an opset version, or an empty Match.
  Match match(std::string_view domain, std::string_view type, int64_t opset) const;
  /// Every ONNX operator name of a domain (for suggestions and listings).
  std::vector<std::string> onnx_types(std::string_view domain) const;

 private:
  std::vector<const Op*> ops_;
  std::unordered_map<std::string, std::vector<Match>> rules_;
  std::vector<std::unique_ptr<OnnxRule>> own_rules_;
};

/// The registry of every op in this build.
const OpRegistry& op_registry();

}  // namespace dais
