#pragma once

#include <vector>

#include "ir/tensor.h"

namespace dais {

/// A tensor's elements as T (float, double or int64_t), converted only when they are not T already.
/// Valid while the tensor lives. Any numeric or boolean element type.
template <typename T>
class WideView {
 public:
  explicit WideView(const Tensor& tensor);
  const T* data() const { return data_; }
  T operator[](int64_t index) const { return data_[index]; }

 private:
  std::vector<T> held_;
  const T* data_;
};

/// A copy of the elements as T, to be changed in place.
template <typename T>
std::vector<T> to_wide(const Tensor& tensor);

/// Writes `count` values to elements [offset, offset + count), by number_cast.
template <typename T>
void store_wide(Tensor& to, int64_t offset, const T* from, int64_t count);

/// The same for quantised results: integers are rounded to nearest, ties to even, and saturated.
void store_saturated(Tensor& to, int64_t offset, const float* from, int64_t count);

/// Calls body.template operator()<T>() with the T that holds products of such elements exactly
/// before accumulation: double for f64, float for every other float type and 8-bit integers.
template <typename Body>
void visit_wide(DType dtype, Body&& body) {
  if (dtype == DType::f64)
    body.template operator()<double>();
  else
    body.template operator()<float>();
}

}  // namespace dais
