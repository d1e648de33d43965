#include "ir/attrs.h"

#include <bit>
#include <charconv>

namespace dais {
namespace {

std::string number_text(float value) {
  char buffer[48];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string out(buffer, end);
  // Keeps floats apart from integers when the text is read back.
  if (out.find_first_of(".enia") == std::string::npos) out += ".0";
  return out;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    out += c;
  }
  return out + "\"";
}

template <typename List, typename Print>
std::string list_text(const List& list, Print print) {
  std::string out = "[";
  for (size_t i = 0; i < list.size(); ++i) out += (i ? "," : "") + print(list[i]);
  return out + "]";
}

}  // namespace

std::string attr_text(const AttrValue& value) {
  struct Print {
    std::string operator()(std::monostate) const { return "none"; }
    std::string operator()(int64_t number) const { return std::to_string(number); }
    std::string operator()(float number) const { return number_text(number); }
    std::string operator()(const std::string& text) const { return quoted(text); }
    std::string operator()(const std::vector<int64_t>& list) const {
      return list_text(list, [](int64_t v) { return std::to_string(v); });
    }
    std::string operator()(const std::vector<float>& list) const {
      return list_text(list, number_text);
    }
    std::string operator()(const std::vector<std::string>& list) const {
      return list_text(list, quoted);
    }
    std::string operator()(const Tensor& tensor) const {
      return "tensor<" + tensor.describe() + ">";
    }
  };
  return std::visit(Print{}, value);
}

bool attr_equal(const AttrValue& a, const AttrValue& b) {
  if (a.index() != b.index()) return false;
  if (auto* x = std::get_if<float>(&a))
    return std::bit_cast<uint32_t>(*x) == std::bit_cast<uint32_t>(std::get<float>(b));
  return std::visit(
      [&]<typename T>(const T& value) {
        if constexpr (std::is_same_v<T, std::monostate>)
          return true;
        else if constexpr (std::is_same_v<T, Tensor>)
          return value.identical(std::get<Tensor>(b));
        else
          return value == std::get<T>(b);
      },
      a);
}

const AttrField* AttrsInfo::find(std::string_view name) const {
  for (const auto& field : fields)
    if (field.name == name) return &field;
  return nullptr;
}

std::string Attrs::text() const {
  std::string out;
  if (!info_) return out;
  const auto defaults = info_->make();
  for (const auto& field : info_->fields) {
    const AttrValue value = field.get(data_.get());
    if (attr_equal(value, field.get(defaults.get()))) continue;
    out += (out.empty() ? "" : ", ") + std::string(field.name) + "=" + attr_text(value);
  }
  return out;
}

size_t Attrs::hash() const {
  // Tensors print as their type only; unequal contents are told apart by operator==.
  return std::hash<std::string>{}(text());
}

bool operator==(const Attrs& a, const Attrs& b) {
  if (a.info_ != b.info_) return false;
  if (a.data_ == b.data_ || !a.info_) return true;
  for (const auto& field : a.info_->fields)
    if (!attr_equal(field.get(a.data_.get()), field.get(b.data_.get()))) return false;
  return true;
}

}  // namespace dais
