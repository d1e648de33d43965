#include "ir/type.h"

namespace dais {

Type Type::tensor(DType dtype, std::optional<Dims> shape) {
  Type type;
  type.dtype = dtype;
  type.shape = std::move(shape);
  return type;
}

Type Type::of(const Tensor& tensor) {
  return Type::tensor(tensor.dtype(), Dims(tensor.shape().begin(), tensor.shape().end()));
}

namespace {

Type wrap(Type::Kind kind, Type element) {
  Type type;
  type.kind = kind;
  type.element = std::make_shared<const Type>(std::move(element));
  return type;
}

}  // namespace

Type Type::sequence(Type element) { return wrap(Kind::sequence, std::move(element)); }
Type Type::optional(Type element) { return wrap(Kind::optional, std::move(element)); }

Type Type::map(DType key, Type value) {
  Type type = wrap(Kind::map, std::move(value));
  type.dtype = key;
  return type;
}

std::optional<Shape> Type::static_shape() const {
  if (!ranked() || shape->size() > kMaxRank) return std::nullopt;
  Shape out;
  for (const Dim& dim : *shape) {
    auto value = dim.constant();
    if (!value || *value < 0) return std::nullopt;
    out.push_back(*value);
  }
  return out;
}

std::string Type::text() const {
  switch (kind) {
    case Kind::tensor:
      return std::string(dtype_name(dtype)) + (shape ? dims_text(*shape) : "[...]");
    case Kind::sequence: return "seq(" + element->text() + ")";
    case Kind::optional: return "optional(" + element->text() + ")";
    case Kind::map: return "map(" + std::string(dtype_name(dtype)) + "," + element->text() + ")";
  }
  return {};
}

bool operator==(const Type& a, const Type& b) {
  if (a.kind != b.kind || a.dtype != b.dtype || a.shape != b.shape) return false;
  if ((a.element == nullptr) != (b.element == nullptr)) return false;
  return a.element == nullptr || *a.element == *b.element;
}

}  // namespace dais
