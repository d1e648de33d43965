#include <algorithm>

#include "onnx/import_scope.h"

/// Finds every operator of a model that there is no rule for, before anything is built.
namespace dais::onnx {
namespace {

std::string in_quotes(std::string_view name) { return "'" + std::string(name) + "'"; }

/// What to do about an operator that has no rule.
std::string remedy_for(std::string_view domain, std::string_view type, int64_t version) {
  const OpRegistry& registry = op_registry();
  for (int64_t other = version; other <= kNewestOpset; ++other)
    if (registry.match(domain, type, other).rule)
      return "It exists from opset " + std::to_string(other) + " on; convert the model to that";
  for (int64_t other = version; other >= 1; --other)
    if (registry.match(domain, type, other).rule)
      return "It exists up to opset " + std::to_string(other) + "; convert the model to that";
  for (const std::string_view elsewhere : {"", "ai.onnx.ml", "com.microsoft"})
    if (elsewhere != domain && !registry.onnx_types(elsewhere).empty() &&
        std::ranges::count(registry.onnx_types(elsewhere), std::string(type)))
      return "Domain " + in_quotes(shown_domain(elsewhere)) + " has an operator of that name";
  const std::string guess = nearest(type, registry.onnx_types(domain));
  if (!guess.empty()) return "Did you mean " + in_quotes(guess) + "?";
  return "Replace it by standard operators, or give it a body as a model-local function";
}

}  // namespace

int64_t newest_opset(std::string_view domain) {
  if (domain.empty()) return kNewestOpset;
  return domain == "ai.onnx.ml" ? 5 : 1;
}

const FunctionProto* Importer::find_function(const NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto found = functions_.find({plain_domain(node.domain), node.type, node.overload});
  return found == functions_.end() ? nullptr : found->second;
}

const Opsets& Importer::opsets_of(const Scope& scope) const {
  return scope.frame ? scope.frame->opsets : opsets_;
}

int64_t Importer::opset(const Opsets& opsets, std::string_view domain) const {
  const auto found = opsets.find(domain);
  if (found != opsets.end()) return found->second;
  // Functions may leave out what the model says; extension domains have had one version only.
  const auto outer = opsets_.find(domain);
  return outer != opsets_.end() ? outer->second : domain.empty() ? 0 : 1;
}

void Importer::check_node(const NodeProto& node, const Opsets& opsets) {
  const auto domain = plain_domain(node.domain);
  if (find_function(node) || (domain.empty() && node.type == "Constant")) return;
  if (is_gradient(node)) return;
  const int64_t version = opset(opsets, domain);
  const std::string place = "node " + in_quotes(node_label(node)) + " (" + std::string(node.type) +
                            ", opset " + std::to_string(version) + ")";
  const bool too_new = domain.empty() && version > kNewestOpset;
  if (!too_new && version > 0 && op_registry().match(domain, node.type, version).rule) return;
  const std::string key = too_new || version < 1
                              ? "opset " + std::string(domain)
                              : std::string(domain) + "::" + std::string(node.type);
  if (++occurrences_[key] > 1) return;
  unsupported_[key] = problems_.size();
  if (too_new)
    report(Error(Code::unsupported,
                 "opset " + std::to_string(version) + " of domain " +
                     in_quotes(shown_domain(domain)) + " is newer than the newest known, " +
                     std::to_string(newest_opset(domain)),
                 place, "Export the model for opset " + std::to_string(newest_opset(domain))));
  else if (version < 1)
    report(Error(Code::invalid_model,
                 "the model imports no opset of domain " + in_quotes(shown_domain(domain)), place,
                 "Its opset_import must name the domain of every operator"));
  else
    report(Error(Code::unsupported,
                 "operator " + in_quotes(node.type) + " of domain " +
                     in_quotes(shown_domain(domain)) + ", opset " + std::to_string(version) +
                     ", is not known",
                 place, remedy_for(domain, node.type, version)));
}

void Importer::check_nodes(const std::vector<NodeProto>& nodes, const Opsets& opsets,
                           std::vector<const FunctionProto*>& called) {
  for (const auto& node : nodes) {
    check_node(node, opsets);
    if (const auto* function = find_function(node)) called.push_back(function);
    for (const auto& attribute : node.attributes)
      for (const auto& graph : attribute.graphs) check_nodes(graph.nodes, opsets, called);
  }
}

void Importer::check_support() {
  std::vector<const FunctionProto*> called;
  check_nodes(model_.graph->nodes, opsets_, called);
  std::unordered_set<const FunctionProto*> seen;
  while (!called.empty()) {
    const FunctionProto* function = called.back();
    called.pop_back();
    if (!seen.insert(function).second) continue;
    check_nodes(function->nodes, read_opsets(function->opsets), called);
  }
  for (const auto& [key, index] : unsupported_) {
    const size_t count = occurrences_[key];
    if (count > 1) problems_[index] = problems_[index].at(std::to_string(count) + " nodes in all");
  }
}

}  // namespace dais::onnx
