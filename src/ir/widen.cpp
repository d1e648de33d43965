#include "ir/widen.h"

#include <algorithm>
#include <unordered_map>

namespace dais {
namespace {

bool is_narrow(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

Type widened_type(const Type& type) {
  Type out = type;
  if (is_narrow(out.dtype)) out.dtype = DType::f64;
  if (out.element) out.element = std::make_shared<const Type>(widened_type(*out.element));
  return out;
}

/// The attributes that hold an element type; their neutral form is a plain number.
bool names_dtype(std::string_view field) {
  constexpr std::string_view names[] = {"to",        "dtype",     "output_dtype", "output_datatype",
                                        "precision", "stash_type"};
  return std::find(std::begin(names), std::end(names), field) != std::end(names);
}

Attrs widened_attrs(const Attrs& attrs) {
  const AttrsInfo* info = attrs.info();
  if (!info) return attrs;
  const std::shared_ptr<void> copy = info->copy(attrs.data());
  for (const AttrField& field : info->fields) {
    const AttrValue value = field.get(copy.get());
    if (const auto* tensor = std::get_if<Tensor>(&value))
      field.set(copy.get(), widened(*tensor));
    else if (const auto* number = std::get_if<int64_t>(&value);
             number && names_dtype(field.name) && is_narrow(static_cast<DType>(*number)))
      field.set(copy.get(), static_cast<int64_t>(DType::f64));
  }
  return {info, copy};
}

}  // namespace

Tensor widened(const Tensor& tensor) {
  if (!tensor || !is_narrow(tensor.dtype())) return tensor;
  Tensor out(DType::f64, tensor.shape());
  visit_dtype<FloatTypes>(tensor.dtype(), [&]<typename T>() {
    const auto from = tensor.data<T>();
    double* to = out.data<double>().data();
    for (const T& value : from) *to++ = number_cast<double>(value);
  });
  return out;
}

std::unique_ptr<Graph> widened(const Graph& graph) {
  auto out = std::make_unique<Graph>();
  out->name = graph.name;
  std::unordered_map<const Value*, Value*> twins;
  for (const Value* input : graph.inputs)
    twins[input] = out->add_input(widened_type(input->type), input->name);
  const auto twin = [&](const Value* value) -> Value* {
    if (!value) return nullptr;
    Value*& found = twins[value];
    if (!found) found = out->add_constant(widened(*value->constant()), value->name);
    return found;
  };
  for (const auto& node : graph.nodes()) {
    Values in;
    for (const Value* value : node->in) in.push_back(twin(value));
    std::vector<std::unique_ptr<Graph>> regions;
    for (const auto& region : node->regions) regions.push_back(widened(*region));
    const Node& copy = out->add_node(*node->op, widened_attrs(node->attrs), std::move(in),
                                     node->outs.size(), node->name, std::move(regions));
    for (size_t i = 0; i < node->outs.size(); ++i) twins[node->outs[i]] = copy.outs[i];
  }
  for (const Value* value : graph.outputs) out->outputs.push_back(twin(value));
  return out;
}

}  // namespace dais
