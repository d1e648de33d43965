#include "ops/control/stack.h"

#include <algorithm>

namespace dais {
namespace {

Tensor empty_stack(int64_t axis, const Type& type) {
  Shape shape;
  const Dims inner = type.shape.value_or(Dims{});
  for (const Dim& dim : inner) shape.push_back(dim.constant().value_or(0));
  const size_t at = normalize_axis(axis, shape.rank() + 1);
  Shape out;
  for (size_t i = 0; i <= shape.rank(); ++i) out.push_back(i == at ? 0 : shape[i < at ? i : i - 1]);
  return Tensor(type.dtype, out);
}

}  // namespace

Tensor stack(const Call& c, const std::vector<Datum>& parts, int64_t axis, bool backwards,
             const Type& type) {
  if (parts.empty()) return empty_stack(axis, type);
  for (const Datum& part : parts)
    if (part.kind != Datum::Kind::tensor || part.tensor.dtype() != parts[0].tensor.dtype() ||
        !(part.tensor.shape() == parts[0].tensor.shape()))
      c.fail("iterations give values of different shapes, which do not stack",
             "Carry such values as a sequence state instead");
  const Shape& inner = parts[0].tensor.shape();
  const size_t at = normalize_axis(axis, inner.rank() + 1);
  Shape shape;
  for (size_t i = 0; i <= inner.rank(); ++i)
    shape.push_back(i == at ? static_cast<int64_t>(parts.size()) : inner[i < at ? i : i - 1]);
  Tensor out(parts[0].tensor.dtype(), shape);
  const int64_t rows = inner.elements(0, at), row = inner.elements(at, inner.rank());
  const auto count = static_cast<int64_t>(parts.size());
  visit_storage(out.dtype(), [&]<typename T>() {
    for (int64_t k = 0; k < count; ++k) {
      const T* from = parts[static_cast<size_t>(backwards ? count - 1 - k : k)].tensor.storage<T>();
      for (int64_t r = 0; r < rows; ++r)
        std::copy_n(from + r * row, row, out.storage<T>() + (r * count + k) * row);
    }
  });
  return out;
}

}  // namespace dais
