#include "ir/op.h"

#include <algorithm>

#include "base/error.h"

namespace dais {
namespace {

std::string rule_key(std::string_view domain, std::string_view type) {
  return std::string(domain) + "::" + std::string(type);
}

}  // namespace

void OpRegistry::add(const Op& op) {
  DAIS_CHECK(find(op.name) == nullptr);
  DAIS_CHECK(op.infer != nullptr && op.attrs != nullptr);
  DAIS_CHECK(op.reference != nullptr || op.decompose != nullptr);
  ops_.push_back(&op);
  for (const auto& rule : op.onnx) rules_[rule_key(rule.domain, rule.type)].push_back({&rule, &op});
}

void OpRegistry::add_rule(const OnnxRule& rule) {
  DAIS_CHECK(rule.import != nullptr);
  own_rules_.push_back(std::make_unique<OnnxRule>(rule));
  rules_[rule_key(rule.domain, rule.type)].push_back({own_rules_.back().get(), nullptr});
}

const Op* OpRegistry::find(std::string_view name) const {
  auto found =
      std::find_if(ops_.begin(), ops_.end(), [&](const Op* op) { return op->name == name; });
  return found == ops_.end() ? nullptr : *found;
}

OpRegistry::Match OpRegistry::match(std::string_view domain, std::string_view type,
                                    int64_t opset) const {
  auto found = rules_.find(rule_key(domain, type));
  if (found == rules_.end()) return {};
  for (const auto& match : found->second)
    if (match.rule->since <= opset && opset <= match.rule->until) return match;
  return {};
}

std::vector<std::string> OpRegistry::onnx_types(std::string_view domain) const {
  std::vector<std::string> out;
  const std::string prefix = rule_key(domain, "");
  for (const auto& [key, matches] : rules_)
    if (key.starts_with(prefix)) out.push_back(key.substr(prefix.size()));
  std::sort(out.begin(), out.end());
  return out;
}

void define_all_ops(OpRegistry& registry);

const OpRegistry& op_registry() {
  static const OpRegistry registry = [] {
    OpRegistry all;
    define_all_ops(all);
    return all;
  }();
  return registry;
}

}  // namespace dais
