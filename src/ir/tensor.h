#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/dtype.h"

namespace dais {

inline constexpr size_t kMaxRank = 16;

/// Sizes of a dense row-major tensor. No allocation; at most kMaxRank axes.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  /// Throws `unsupported` above kMaxRank and `invalid_argument` for a negative size.
  explicit Shape(std::span<const int64_t> dims);
  explicit Shape(const std::vector<int64_t>& dims) : Shape(std::span<const int64_t>(dims)) {}

  size_t rank() const { return rank_; }
  int64_t operator[](size_t axis) const { return dims_[axis]; }
  int64_t& operator[](size_t axis) { return dims_[axis]; }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + rank_; }
  std::span<const int64_t> dims() const { return {dims_.data(), rank_}; }
  std::vector<int64_t> vector() const { return {begin(), end()}; }
  int64_t back() const { return dims_[rank_ - 1]; }
  void push_back(int64_t size);
  void resize(size_t rank);  ///< new axes have size 1

  /// Product of all sizes, or of axes [first, last). Throws `exhausted` beyond 2^62.
  int64_t elements() const { return elements(0, rank_); }
  int64_t elements(size_t first, size_t last) const;

  bool operator==(const Shape& other) const;
  std::string text() const;  ///< "[2,3]"

 private:
  std::array<int64_t, kMaxRank> dims_{};
  size_t rank_ = 0;
};

/// Row-major strides in elements.
Shape strides_of(const Shape& shape);

/// Maps -rank … rank-1 to 0 … rank-1; throws `invalid_argument` naming the valid range.
size_t normalize_axis(int64_t axis, size_t rank);

/// NumPy broadcasting of two shapes; throws `invalid_argument` naming both.
Shape broadcast(const Shape& a, const Shape& b);

/// A handle to a dense row-major array. Copies share the elements. The elements are either owned
/// (64-byte aligned) or a view kept alive by `owner`. A default-made Tensor is "absent".
class Tensor {
 public:
  Tensor() = default;
  /// Allocates; elements are uninitialised (strings are empty). Throws `exhausted` when the size
  /// cannot be had.
  Tensor(DType dtype, const Shape& shape);
  static Tensor view(DType dtype, const Shape& shape, void* data,
                     std::shared_ptr<const void> owner = nullptr);
  template <typename T>
  static Tensor of(const Shape& shape, std::initializer_list<T> values);
  template <typename T>
  static Tensor of(const Shape& shape, std::span<const T> values);
  template <typename T>
  static Tensor scalar(T value) {
    return of<T>(Shape{}, {value});
  }
  static Tensor ints(std::span<const int64_t> values);  ///< 1-D i64

  explicit operator bool() const { return dtype_ != DType::undefined; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  size_t rank() const { return shape_.rank(); }
  int64_t elements() const { return elements_; }
  size_t bytes() const { return static_cast<size_t>(elements_) * dtype_size(dtype_); }

  void* raw() { return data_; }
  const void* raw() const { return data_; }
  /// The elements as T, which must be the exact element type (checked).
  template <typename T>
  std::span<T> data() {
    DAIS_CHECK(dtype_ == dtype_of<T>);
    return {static_cast<T*>(data_), static_cast<size_t>(elements_)};
  }
  template <typename T>
  std::span<const T> data() const {
    DAIS_CHECK(dtype_ == dtype_of<T>);
    return {static_cast<const T*>(data_), static_cast<size_t>(elements_)};
  }
  /// The elements as any type of the same size (see visit_storage).
  template <typename T>
  T* storage() {
    return static_cast<T*>(data_);
  }
  template <typename T>
  const T* storage() const {
    return static_cast<const T*>(data_);
  }

  /// The same elements under another shape of equal element count.
  Tensor reshaped(const Shape& shape) const;
  Tensor clone() const;
  /// Integer contents (any integer or boolean type) widened to i64.
  std::vector<int64_t> to_ints() const;
  /// One element of any numeric or boolean type as double.
  double to_double(int64_t index = 0) const;
  const std::shared_ptr<const void>& owner() const { return owner_; }
  /// Same dtype, shape and bytes.
  bool identical(const Tensor& other) const;
  std::string describe() const;  ///< "f32[2,3]"

 private:
  DType dtype_ = DType::undefined;
  Shape shape_;
  int64_t elements_ = 0;
  void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

template <typename T>
Tensor Tensor::of(const Shape& shape, std::span<const T> values) {
  Tensor tensor(dtype_of<T>, shape);
  DAIS_CHECK(static_cast<size_t>(tensor.elements()) == values.size());
  std::copy(values.begin(), values.end(), tensor.data<T>().begin());
  return tensor;
}

template <typename T>
Tensor Tensor::of(const Shape& shape, std::initializer_list<T> values) {
  return of<T>(shape, std::span<const T>(values.begin(), values.size()));
}

/// What a graph value holds at run time: a tensor, a sequence, a map, or nothing.
struct Datum {
  enum class Kind : uint8_t { none, tensor, sequence, map };
  Kind kind = Kind::none;                           ///< none: an empty optional or an omitted value
  Tensor tensor;                                    ///< for a map: its keys
  std::shared_ptr<const std::vector<Datum>> items;  ///< a sequence's; for a map: one, its values

  Datum() = default;
  Datum(Tensor value) : kind(Kind::tensor), tensor(std::move(value)) {}
  static Datum sequence(std::vector<Datum> items);
  static Datum map(Tensor keys, Tensor values);
  bool has_value() const { return kind != Kind::none; }
};

}  // namespace dais
