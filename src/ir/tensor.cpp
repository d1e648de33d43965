#include "ir/tensor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace dais {

Shape::Shape(std::span<const int64_t> dims) {
  for (int64_t size : dims) push_back(size);
}

void Shape::push_back(int64_t size) {
  if (rank_ == kMaxRank)
    throw Error(Code::unsupported, "a tensor has more than " + std::to_string(kMaxRank) + " axes");
  if (size < 0)
    throw Error(Code::invalid_argument, "a tensor has the negative size " + std::to_string(size));
  dims_[rank_++] = size;
}

void Shape::resize(size_t rank) {
  if (rank > kMaxRank)
    throw Error(Code::unsupported, "a tensor has more than " + std::to_string(kMaxRank) + " axes");
  for (size_t axis = rank_; axis < rank; ++axis) dims_[axis] = 1;
  rank_ = rank;
}

int64_t Shape::elements(size_t first, size_t last) const {
  int64_t product = 1;
  bool overflow = false;
  for (size_t axis = first; axis < last; ++axis) {
    if (dims_[axis] == 0) return 0;
    overflow |= __builtin_mul_overflow(product, dims_[axis], &product);
  }
  if (overflow || product > (int64_t{1} << 62))
    throw Error(Code::exhausted, "a tensor of shape " + text() + " has too many elements");
  return product;
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ && std::equal(begin(), end(), other.begin());
}

std::string Shape::text() const {
  std::string out = "[";
  for (size_t axis = 0; axis < rank_; ++axis)
    out += (axis ? "," : "") + std::to_string(dims_[axis]);
  return out + "]";
}

Shape strides_of(const Shape& shape) {
  Shape strides = shape;
  int64_t stride = 1;
  for (size_t axis = shape.rank(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

size_t normalize_axis(int64_t axis, size_t rank) {
  const auto limit = static_cast<int64_t>(rank);
  if (axis < -limit || axis >= limit) {
    throw Error(
        Code::invalid_argument,
        "axis " + std::to_string(axis) + " is outside a rank-" + std::to_string(rank) + " tensor",
        "",
        rank == 0 ? "A scalar has no axes"
                  : "Use " + std::to_string(-limit) + " to " + std::to_string(limit - 1));
  }
  return static_cast<size_t>(axis < 0 ? axis + limit : axis);
}

Shape broadcast(const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.rank(), b.rank());
  Shape out;
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t x = axis + a.rank() < rank ? 1 : a[axis + a.rank() - rank];
    const int64_t y = axis + b.rank() < rank ? 1 : b[axis + b.rank() - rank];
    if (x != y && x != 1 && y != 1) {
      throw Error(Code::invalid_argument,
                  "shapes " + a.text() + " and " + b.text() + " do not broadcast", "",
                  "Sizes must be equal or 1, counted from the last axis");
    }
    out.push_back(x == 1 ? y : x);
  }
  return out;
}

namespace {

std::shared_ptr<void> allocate(DType dtype, int64_t elements) {
  if (dtype == DType::string) {
    auto strings = std::make_shared<std::vector<std::string>>(static_cast<size_t>(elements));
    return {strings, strings->data()};
  }
  const size_t size_bytes = static_cast<size_t>(elements) * dtype_size(dtype);
  void* memory = std::aligned_alloc(64, (size_bytes + 127) / 64 * 64);
  if (memory == nullptr) throw std::bad_alloc();
  return {memory, std::free};
}

}  // namespace

Tensor::Tensor(DType dtype, const Shape& shape)
    : dtype_(dtype), shape_(shape), elements_(shape.elements()) {
  DAIS_CHECK(dtype != DType::undefined);
  // No address space holds more; asking malloc would only trip sanitizers.
  if (static_cast<uint64_t>(elements_) > (uint64_t{1} << 40) / dtype_size(dtype))
    throw Error(Code::exhausted, "a tensor " + describe() + " does not fit in memory");
  try {
    auto memory = allocate(dtype, elements_);
    data_ = memory.get();
    owner_ = std::move(memory);
  } catch (const std::bad_alloc&) {
    throw Error(Code::exhausted, "no memory for a tensor " + describe());
  }
}

Tensor Tensor::view(DType dtype, const Shape& shape, void* data,
                    std::shared_ptr<const void> owner) {
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.shape_ = shape;
  tensor.elements_ = shape.elements();
  tensor.data_ = data;
  tensor.owner_ = std::move(owner);
  return tensor;
}

Tensor Tensor::ints(std::span<const int64_t> values) {
  return of<int64_t>(Shape{static_cast<int64_t>(values.size())}, values);
}

Tensor Tensor::reshaped(const Shape& shape) const {
  DAIS_CHECK(shape.elements() == elements_);
  Tensor out = *this;
  out.shape_ = shape;
  return out;
}

Tensor Tensor::clone() const {
  Tensor out(dtype_, shape_);
  if (dtype_ == DType::string) {
    auto from = data<std::string>();
    std::copy(from.begin(), from.end(), out.data<std::string>().begin());
  } else if (bytes() > 0) {
    std::memcpy(out.raw(), raw(), bytes());
  }
  return out;
}

std::vector<int64_t> Tensor::to_ints() const {
  std::vector<int64_t> out(static_cast<size_t>(elements_));
  using Kinds = DTypes<DType::i64, DType::i32, DType::u8, DType::i8, DType::u16, DType::i16,
                       DType::u32, DType::u64, DType::boolean>;
  visit_dtype<Kinds>(dtype_, [&]<typename T>() {
    auto from = data<T>();
    std::transform(from.begin(), from.end(), out.begin(),
                   [](T value) { return static_cast<int64_t>(value); });
  });
  return out;
}

double Tensor::to_double(int64_t index) const {
  double out = 0;
  if (dtype_ == DType::boolean) return data<bool>()[static_cast<size_t>(index)] ? 1 : 0;
  visit_dtype<NumericTypes>(dtype_, [&]<typename T>() {
    out = number_cast<double>(data<T>()[static_cast<size_t>(index)]);
  });
  return out;
}

bool Tensor::identical(const Tensor& other) const {
  if (dtype_ != other.dtype_ || !(shape_ == other.shape_)) return false;
  if (dtype_ == DType::string)
    return std::ranges::equal(data<std::string>(), other.data<std::string>());
  return bytes() == 0 || std::memcmp(data_, other.data_, bytes()) == 0;
}

std::string Tensor::describe() const { return std::string(dtype_name(dtype_)) + shape_.text(); }

Datum Datum::sequence(std::vector<Datum> items) {
  Datum out;
  out.kind = Kind::sequence;
  out.items = std::make_shared<const std::vector<Datum>>(std::move(items));
  return out;
}

Datum Datum::map(Tensor keys, Tensor values) {
  Datum out;
  out.kind = Kind::map;
  out.tensor = std::move(keys);
  out.items = std::make_shared<const std::vector<Datum>>(std::vector<Datum>{std::move(values)});
  return out;
}

}  // namespace dais
