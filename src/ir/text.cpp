#include "ir/text.h"

#include <algorithm>
#include <charconv>

namespace dais {
namespace {

constexpr int64_t kSmall = 16;

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '/';
}

/// Names of plain characters stand bare; others are quoted, since files may use any text.
std::string value_text(const Value* value) {
  if (!value) return "none";
  const bool plain = !value->name.empty() &&
                     std::all_of(value->name.begin(), value->name.end(), is_name_character);
  return plain ? "%" + value->name : "%" + attr_text(value->name);
}

std::string list_text(const Values& values) {
  std::string out;
  for (const Value* value : values) out += (out.empty() ? "" : ", ") + value_text(value);
  return out;
}

template <typename Number>
std::string number_text(Number number) {
  char buffer[48];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr};
}

std::string element_text(const Tensor& tensor, size_t i) {
  if (tensor.dtype() == DType::boolean) return tensor.data<bool>()[i] ? "true" : "false";
  if (tensor.dtype() == DType::string) return attr_text(tensor.data<std::string>()[i]);
  std::string out;
  visit_dtype<NumericTypes>(tensor.dtype(), [&]<typename T>() {
    const T value = tensor.data<T>()[i];
    if constexpr (std::is_integral_v<T>)
      out = number_text(
          static_cast<std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>(value));
    else if constexpr (std::is_arithmetic_v<T>)
      out = number_text(value);
    else
      out = number_text(static_cast<float>(value));
  });
  return out;
}

bool prints_elements(DType dtype) {
  return NumericTypes::contains(dtype) || dtype == DType::boolean || dtype == DType::string;
}

std::string hex_text(const Tensor& tensor) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out = "x\"";
  const auto* bytes = static_cast<const uint8_t*>(tensor.raw());
  for (size_t i = 0; i < tensor.bytes(); ++i) {
    out += digits[bytes[i] >> 4];
    out += digits[bytes[i] & 15];
  }
  return out + "\"";
}

/// f32[2]{1,2.5}, or the bytes in hexadecimal: f32[300]x"0000803f…".
std::string tensor_text(const Tensor& tensor, Contents contents) {
  std::string out = tensor.describe();
  const bool elements = prints_elements(tensor.dtype());
  const bool small = tensor.elements() <= kSmall;
  if (!small && contents == Contents::small) return out + "{...}";
  if (!elements || (!small && tensor.dtype() != DType::string)) return out + hex_text(tensor);
  out += "{";
  for (int64_t i = 0; i < tensor.elements(); ++i)
    out += (i ? "," : "") + element_text(tensor, static_cast<size_t>(i));
  return out + "}";
}

std::string attrs_text(const Node& node, Contents contents) {
  std::string out;
  if (!node.attrs.info()) return out;
  const auto defaults = node.attrs.info()->make();
  for (const auto& field : node.attrs.info()->fields) {
    const AttrValue value = field.get(node.attrs.data());
    if (attr_equal(value, field.get(defaults.get()))) continue;
    const auto* tensor = std::get_if<Tensor>(&value);
    out += ", " + std::string(field.name) + "=" +
           (tensor ? tensor_text(*tensor, contents) : attr_text(value));
  }
  return out;
}

void print(const Graph& graph, const std::string& indent, Contents contents, std::string& out) {
  for (const Value* value : graph.inputs)
    out += indent + "input " + value_text(value) + ": " + value->type.text() + "\n";
  for (const auto& value : graph.values())
    if (value->constant())
      out += indent + "constant " + value_text(value.get()) + " = " +
             tensor_text(*value->constant(), contents) + "\n";
  for (const auto& node : graph.nodes()) {
    std::string inside = list_text(node->in) + attrs_text(*node, contents);
    if (node->in.empty() && !inside.empty()) inside.erase(0, 2);
    out +=
        indent + list_text(node->outs) + " = " + std::string(node->op->name) + "(" + inside + ")";
    if (!node->name.empty()) out += " @" + attr_text(node->name);
    for (const auto& region : node->regions) {
      out += " {\n";
      print(*region, indent + "  ", contents, out);
      out += indent + "}";
    }
    out += "\n";
  }
  out += indent + "output " + list_text(graph.outputs) + "\n";
}

}  // namespace

std::string graph_text(const Graph& graph, Contents contents) {
  std::string out;
  print(graph, "", contents, out);
  return out;
}

std::string Graph::text() const { return graph_text(*this, Contents::small); }

}  // namespace dais
