#include "ops/wide.h"

#include <algorithm>
#include <cmath>

namespace dais {
namespace {

using WideTypes =
    DTypes<DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64, DType::i32, DType::u8,
           DType::i8, DType::u16, DType::i16, DType::u32, DType::u64, DType::boolean,
           DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::f8e8m0,
           DType::f4e2m1, DType::u4, DType::i4, DType::u2, DType::i2>;

}  // namespace

template <typename T>
std::vector<T> to_wide(const Tensor& tensor) {
  std::vector<T> out(static_cast<size_t>(tensor.elements()));
  visit_dtype<WideTypes>(tensor.dtype(), [&]<typename From>() {
    const auto from = tensor.data<From>();
    std::transform(from.begin(), from.end(), out.begin(),
                   [](From value) { return number_cast<T>(value); });
  });
  return out;
}

template <typename T>
WideView<T>::WideView(const Tensor& tensor) {
  if (tensor.dtype() == dtype_of<T>) {
    data_ = tensor.data<T>().data();
  } else {
    held_ = to_wide<T>(tensor);
    data_ = held_.data();
  }
}

template <typename T>
void store_wide(Tensor& to, int64_t offset, const T* from, int64_t count) {
  DAIS_CHECK(offset >= 0 && offset + count <= to.elements());
  visit_dtype<WideTypes>(to.dtype(), [&]<typename To>() {
    std::transform(from, from + count, to.data<To>().begin() + offset,
                   [](T value) { return number_cast<To>(value); });
  });
}

void store_saturated(Tensor& to, int64_t offset, const float* from, int64_t count) {
  DAIS_CHECK(offset >= 0 && offset + count <= to.elements());
  visit_dtype<WideTypes>(to.dtype(), [&]<typename To>() {
    auto out = to.data<To>().begin() + offset;
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_integral_v<To> && !std::is_same_v<To, bool>) {
        const auto low = static_cast<double>(std::numeric_limits<To>::min());
        const auto high = static_cast<double>(std::numeric_limits<To>::max());
        const double rounded = std::nearbyint(static_cast<double>(from[i]));
        out[i] = std::isnan(rounded) ? To{0}
                 : rounded >= high   ? std::numeric_limits<To>::max()
                                     : static_cast<To>(std::max(rounded, low));
      } else if constexpr (requires { To::max; }) {
        const auto rounded = std::nearbyint(from[i]);
        out[i] = To(static_cast<int>(std::clamp<float>(rounded, To::min, To::max)));
      } else {
        out[i] = number_cast<To>(from[i]);
      }
    }
  });
}

#define DAIS_WIDE(T)                                 \
  template class WideView<T>;                        \
  template std::vector<T> to_wide<T>(const Tensor&); \
  template void store_wide<T>(Tensor&, int64_t, const T*, int64_t)
DAIS_WIDE(float);
DAIS_WIDE(double);
DAIS_WIDE(int64_t);
#undef DAIS_WIDE

}  // namespace dais
