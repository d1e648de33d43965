#pragma once

#include <memory>
#include <optional>
#include <string>

#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/tensor.h"

namespace dais {

/// What a Value holds: a tensor, a sequence of some type, an optional of some type, or a map.
/// A tensor's shape may be unknown (not even its rank), and its sizes may be symbolic.
struct Type {
  enum class Kind : uint8_t { tensor, sequence, optional, map };
  Kind kind = Kind::tensor;
  DType dtype = DType::undefined;       ///< tensor: element type; map: key type
  std::optional<Dims> shape;            ///< tensor only; nullopt: unknown rank
  std::shared_ptr<const Type> element;  ///< sequence, optional: element; map: value

  static Type tensor(DType dtype, std::optional<Dims> shape = std::nullopt);
  static Type of(const Tensor& tensor);
  static Type sequence(Type element);
  static Type optional(Type element);
  static Type map(DType key, Type value);

  bool is_tensor() const { return kind == Kind::tensor; }
  bool ranked() const { return is_tensor() && shape.has_value(); }
  /// All sizes known, as a Shape.
  std::optional<Shape> static_shape() const;
  std::string text() const;  ///< "f32[N,3]", "f32[...]", "seq(f32[2])"
};

bool operator==(const Type& a, const Type& b);

}  // namespace dais
