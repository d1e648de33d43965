#include "ops/elementwise/elements.h"

#include <algorithm>

namespace dais {
namespace {

using Widened =
    DTypes<DType::f32, DType::i64, DType::f64, DType::f16, DType::bf16, DType::i32, DType::u8,
           DType::i8, DType::u16, DType::i16, DType::u32, DType::u64, DType::boolean,
           DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::f8e8m0,
           DType::f4e2m1, DType::u4, DType::i4, DType::u2, DType::i2>;

template <typename T>
constexpr bool is_small_int = requires {
  T::max;
};

template <typename C, typename T>
C widen_one(T value) {
  if constexpr (is_small_int<T>)
    return static_cast<C>(static_cast<int>(value));
  else
    return number_cast<C>(value);
}

template <typename T, typename C>
T narrow_one(C value) {
  if constexpr (std::is_same_v<T, bool>)
    return value != 0;
  else if constexpr (is_small_int<T> && !std::is_floating_point_v<C>)
    return T(static_cast<int>(value & 0xff));
  else if constexpr (is_small_int<T>)
    return T(saturated<int32_t>(value));
  else if constexpr (std::is_floating_point_v<C> && std::is_integral_v<T>)
    return saturated<T>(value);
  else
    return number_cast<T>(value);
}

}  // namespace

Wide wide_of(DType dtype) {
  if (is_float(dtype)) return Wide::real;
  return is_signed_integer(dtype) ? Wide::integer : Wide::natural;
}

template <typename C>
void load_elements(const Tensor& from, int64_t first, int64_t step, int64_t n, C* to) {
  visit_dtype<Widened>(from.dtype(), [&]<typename T>() {
    const T* source = from.storage<T>() + first;
    if (step == 0)
      std::fill_n(to, n, widen_one<C>(*source));
    else
      for (int64_t i = 0; i < n; ++i) to[i] = widen_one<C>(source[i * step]);
  });
}

template <typename C>
void store_elements(Tensor& to, int64_t first, int64_t step, int64_t n, const C* from) {
  visit_dtype<Widened>(to.dtype(), [&]<typename T>() {
    T* target = to.storage<T>() + first;
    for (int64_t i = 0; i < n; ++i) target[i * step] = narrow_one<T>(from[i]);
  });
}

template void load_elements(const Tensor&, int64_t, int64_t, int64_t, double*);
template void load_elements(const Tensor&, int64_t, int64_t, int64_t, int64_t*);
template void load_elements(const Tensor&, int64_t, int64_t, int64_t, uint64_t*);
template void store_elements(Tensor&, int64_t, int64_t, int64_t, const double*);
template void store_elements(Tensor&, int64_t, int64_t, int64_t, const int64_t*);
template void store_elements(Tensor&, int64_t, int64_t, int64_t, const uint64_t*);

}  // namespace dais
