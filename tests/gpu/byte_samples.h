#pragma once

#include "runtime/row_test.h"

namespace dais {

/// Bytes of the whole range that look random but are always the same.
template <typename T>
Tensor bytes(const Shape& shape, uint64_t seed = 1) {
  const Tensor values = sample<float>(shape, 1, seed);
  constexpr bool with_sign = std::is_same_v<T, int8_t>;
  Tensor out(with_sign ? DType::i8 : DType::u8, shape);
  for (int64_t i = 0; i < shape.elements(); ++i)
    out.data<T>()[static_cast<size_t>(i)] =
        static_cast<T>(values.to_double(i) * 127 + (with_sign ? 0 : 127));
  return out;
}
/// The nearest floats of 8 bits.
inline Tensor float8(const Tensor& from, DType dtype) {
  Tensor to(dtype, from.shape());
  for (int64_t i = 0; i < from.elements(); ++i) {
    const auto x = static_cast<float>(from.to_double(i));
    static_cast<uint8_t*>(to.raw())[i] =
        dtype == DType::f8e5m2 ? Float8E5M2(x).bits : Float8E4M3FN(x).bits;
  }
  return to;
}
inline Tensor one_float(float value) { return Tensor::of<float>({}, {value}); }
template <typename T>
Tensor one(T value) {
  return Tensor::of<T>({}, {value});
}

}  // namespace dais
