#include "ir/onnx_export.h"

namespace dais {

std::vector<std::pair<std::string, AttrValue>> stated_attributes(const Node& node) {
  std::vector<std::pair<std::string, AttrValue>> out;
  const std::shared_ptr<void> defaults = node.op->attrs->make();
  for (const AttrField& field : node.op->attrs->fields) {
    AttrValue value = field.get(node.attrs.data());
    if (std::holds_alternative<std::monostate>(value)) continue;
    if (!field.required && attr_equal(value, field.get(defaults.get()))) continue;
    out.emplace_back(field.name, std::move(value));
  }
  return out;
}

void no_form(const Node& node, const std::string& what, int64_t opset, int64_t since) {
  throw Error(Code::unsupported, what + " has no form in opset " + std::to_string(opset),
              node.where(), "Write the model for opset " + std::to_string(since) + " or later");
}

OnnxNode export_plainly(const Node& node, int64_t) {
  return {.type = {}, .in = node.in, .attributes = stated_attributes(node)};
}

}  // namespace dais
