#include "ops/control/region_types.h"

#include <algorithm>

namespace dais {

Type outer_type(Inference& c, const Graph& region, const Type& inner) {
  Type out = inner;
  if (!out.shape) return out;
  // Inputs of the region that stand for captures or states carry symbols of the outer graph.
  std::vector<std::string> visible;
  for (size_t i = 0; i < c.inputs(); ++i)
    if (c.has(i) && c.type(i).shape)
      for (const Dim& dim : *c.type(i).shape) dim.collect_symbols(visible);
  std::vector<std::string> given;
  for (const Value* input : region.inputs)
    if (input->type.shape)
      for (const Dim& dim : *input->type.shape) dim.collect_symbols(given);
  for (Dim& dim : *out.shape) {
    std::vector<std::string> used;
    dim.collect_symbols(used);
    const bool known = std::all_of(used.begin(), used.end(), [&](const std::string& symbol) {
      return std::find(visible.begin(), visible.end(), symbol) != visible.end() &&
             std::find(given.begin(), given.end(), symbol) != given.end();
    });
    if (!known) dim = c.fresh();
  }
  return out;
}

Type element_hint(const Value* value) {
  if (!value) return {};
  return value->type.is_tensor() ? Type::tensor(value->type.dtype) : value->type;
}

Type merged_type(Inference& c, const Type& a, const Type& b) {
  if (a == b) return a;
  if (a.kind == Type::Kind::optional && b.kind != Type::Kind::optional)
    return Type::optional(merged_type(c, *a.element, b));
  if (b.kind == Type::Kind::optional && a.kind != Type::Kind::optional)
    return Type::optional(merged_type(c, a, *b.element));
  if (a.kind != b.kind) return a;
  if (a.element && b.element) {
    Type out = a;
    out.element = std::make_shared<const Type>(merged_type(c, *a.element, *b.element));
    return out;
  }
  if (a.dtype != b.dtype)
    c.fail("the branches give " + a.text() + " and " + b.text(), "Cast one of them");
  Type out = Type::tensor(a.dtype);
  if (!a.shape || !b.shape || a.shape->size() != b.shape->size()) return out;
  out.shape = a.shape;
  for (size_t axis = 0; axis < a.shape->size(); ++axis)
    if (!((*a.shape)[axis] == (*b.shape)[axis])) (*out.shape)[axis] = c.fresh();
  return out;
}

}  // namespace dais
