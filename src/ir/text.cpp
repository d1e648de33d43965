#include "ir/graph.h"

namespace dais {
namespace {

/// Names of plain characters stand bare; others are quoted, since files may use any text.
std::string value_text(const Value* value) {
  if (!value) return "none";
  bool plain = !value->name.empty();
  for (char c : value->name)
    plain &=
        std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '/' || c == ':';
  return plain ? "%" + value->name : "%\"" + value->name + "\"";
}

std::string list_text(const Values& values) {
  std::string out;
  for (const Value* value : values) out += (out.empty() ? "" : ", ") + value_text(value);
  return out;
}

void print(const Graph& graph, const std::string& indent, std::string& out) {
  for (const Value* value : graph.inputs)
    out += indent + "input " + value_text(value) + ": " + value->type.text() + "\n";
  for (const auto& value : graph.values())
    if (value->constant())
      out += indent + "constant " + value_text(value.get()) + ": " + value->type.text() + "\n";
  for (const auto& node : graph.nodes()) {
    out += indent + list_text(node->outs) + " = " + std::string(node->op->name) + "(" +
           list_text(node->in);
    const std::string attrs = node->attrs.text();
    if (!attrs.empty()) out += (node->in.empty() ? "" : ", ") + attrs;
    out += ")";
    for (const auto& region : node->regions) {
      out += " {\n";
      print(*region, indent + "  ", out);
      out += indent + "}";
    }
    out += "\n";
  }
  out += indent + "output " + list_text(graph.outputs) + "\n";
}

}  // namespace

std::string Graph::text() const {
  std::string out;
  print(*this, "", out);
  return out;
}

}  // namespace dais
