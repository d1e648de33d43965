#include "ir/onnx_import.h"

namespace dais {
namespace {

template <typename T>
T typed(const OnnxImport& import, std::string_view name, T otherwise) {
  const AttrValue* value = import.attribute(name);
  if (!value) return otherwise;
  T out{};
  if (!detail::AttrConvert<T>::set(out, *value))
    import.fail("attribute '" + std::string(name) + "' holds " + attr_text(*value) +
                ", which is of the wrong kind");
  return out;
}

}  // namespace

const AttrValue* OnnxImport::attribute(std::string_view attribute_name) const {
  for (const auto& [key, value] : attributes)
    if (key == attribute_name) return &value;
  return nullptr;
}

int64_t OnnxImport::integer(std::string_view attribute_name, int64_t otherwise) const {
  return typed(*this, attribute_name, otherwise);
}
float OnnxImport::number(std::string_view attribute_name, float otherwise) const {
  return typed(*this, attribute_name, otherwise);
}
std::string OnnxImport::text(std::string_view attribute_name, std::string_view otherwise) const {
  return typed(*this, attribute_name, std::string(otherwise));
}
std::vector<int64_t> OnnxImport::integers(std::string_view attribute_name) const {
  return typed(*this, attribute_name, std::vector<int64_t>{});
}
std::vector<float> OnnxImport::numbers(std::string_view attribute_name) const {
  return typed(*this, attribute_name, std::vector<float>{});
}

void OnnxImport::fill(const AttrsInfo& info, void* attrs, bool lenient) const {
  for (const auto& [key, value] : attributes) {
    const AttrField* field = info.find(key);
    if (!field) {
      if (lenient) continue;
      std::vector<std::string> names;
      for (const auto& known : info.fields) names.emplace_back(known.name);
      const std::string guess = nearest(key, names);
      fail("attribute '" + key + "' is not one of " + std::string(type),
           guess.empty() ? "" : "Did you mean '" + guess + "'?");
    }
    if (!field->set(attrs, value))
      fail("attribute '" + key + "' holds " + attr_text(value) + ", which is of the wrong kind");
  }
}

Value* OnnxImport::scalar_like(double value, const Value* like) {
  if (!like) fail("an input is missing");
  Tensor tensor(like->type.dtype, Shape{});
  visit_dtype<NumericTypes>(like->type.dtype,
                            [&]<typename T>() { tensor.data<T>()[0] = number_cast<T>(value); });
  return graph.add_constant(std::move(tensor));
}

void OnnxImport::fail(const std::string& problem, const std::string& remedy) const {
  throw Error(Code::invalid_model, std::string(type) + ": " + problem,
              "node '" + std::string(name) + "', opset " + std::to_string(opset), remedy);
}

}  // namespace dais
