// ScatterND and ScatterElements: the data is copied (unless the result may stand in its place),
// then the updates go to their places or are combined with what lies there.
#include <algorithm>
#include <cstring>

#include "base/threads.h"
#include "ops/scatter/combine.h"
#include "ops/scatter/scatter.h"
#include "ops/strided.h"
#include "runtime/kernel.h"

namespace dais {
namespace {

/// Copies the data into the result, unless that lies in its place.
void start_from(const void* data, void* result, int64_t bytes) {
  if (data == result) return;
  const auto* from = static_cast<const std::byte*>(data);
  auto* to = static_cast<std::byte*>(result);
  parallel_for(bytes, int64_t{256} * 1024, [&](int64_t first, int64_t last) {
    std::memcpy(to + first, from + first, static_cast<size_t>(last - first));
  });
}

/// Slices by index tuples. In order, on one thread: of repeated indices the last one wins.
class BoundSlices : public BoundKernel {
 public:
  BoundSlices(const Sizes& sizes, DType dtype, ScatterCombine how)
      : data_(sizes.in[0]), dtype_(dtype), how_(how) {
    const Shape& indices = sizes.in[1];
    const auto element_size = static_cast<int64_t>(dtype_size(dtype));
    tuple_ = static_cast<size_t>(indices.back());
    tuples_ = indices.elements(0, indices.rank() - 1);
    bytes_ = data_.elements() * element_size;
    slice_ = data_.elements(tuple_, data_.rank()) * element_size;
    int64_t step = slice_;
    for (size_t axis = tuple_; axis-- > 0;) {
      steps_[axis] = step;
      step *= data_[axis];
    }
  }

  Fault run(const Arguments& arguments) noexcept override {
    const auto* indices = static_cast<const int64_t*>(arguments.in[1]);
    for (int64_t i = 0; i < tuples_; ++i)
      for (size_t k = 0; k < tuple_; ++k) {
        const int64_t index = indices[i * static_cast<int64_t>(tuple_) + static_cast<int64_t>(k)];
        if (index < -data_[k] || index >= data_[k]) return {"an index is outside its axis", index};
      }
    if (bytes_ == 0) return {};
    start_from(arguments.in[0], arguments.out[0], bytes_);
    const auto* updates = static_cast<const std::byte*>(arguments.in[2]);
    auto* to = static_cast<std::byte*>(arguments.out[0]);
    if (how_ == ScatterCombine::none)
      replace(indices, updates, to);
    else
      combine(indices, updates, to);
    return {};
  }

 private:
  /// Neighbouring slices that follow each other on both sides are moved together.
  void replace(const int64_t* indices, const std::byte* updates, std::byte* to) const {
    int64_t start = 0, first = tuples_ > 0 ? offset(indices) : 0;
    for (int64_t i = 1; i <= tuples_; ++i) {
      const int64_t next =
          i < tuples_ ? offset(indices + i * static_cast<int64_t>(tuple_)) : int64_t{-1};
      if (i < tuples_ && next == first + (i - start) * slice_) continue;
      std::memcpy(to + first, updates + start * slice_, static_cast<size_t>((i - start) * slice_));
      start = i;
      first = next;
    }
  }

  void combine(const int64_t* indices, const std::byte* updates, std::byte* to) const {
    visit_dtype<NumericTypes>(dtype_, [&]<typename T>() {
      const auto count = slice_ / static_cast<int64_t>(sizeof(T));
      const T* from = reinterpret_cast<const T*>(updates);
      for (int64_t i = 0; i < tuples_; ++i, from += count) {
        T* target = reinterpret_cast<T*>(to + offset(indices + i * static_cast<int64_t>(tuple_)));
        for (int64_t j = 0; j < count; ++j) target[j] = combined(how_, target[j], from[j]);
      }
    });
  }

  int64_t offset(const int64_t* tuple) const {
    int64_t at = 0;
    for (size_t k = 0; k < tuple_; ++k)
      at += (tuple[k] < 0 ? tuple[k] + data_[k] : tuple[k]) * steps_[k];
    return at;
  }

  Shape data_;
  DType dtype_;
  ScatterCombine how_;
  Strides steps_{};
  size_t tuple_ = 0;
  int64_t tuples_ = 0, bytes_ = 0, slice_ = 0;
};

/// Single elements by index, in order, on one thread.
template <typename Index>
class BoundPlaces : public BoundKernel {
 public:
  BoundPlaces(const Sizes& sizes, size_t axis, DType dtype, ScatterCombine how)
      : dtype_(dtype),
        how_(how),
        loop_(sizes.in[1],
              {broadcast_strides(sizes.in[1], sizes.in[1]), other_steps(sizes.in[0], axis)}),
        count_(sizes.in[1].elements()),
        size_(sizes.in[0][axis]),
        stride_(strides_of(sizes.in[0])[axis]),
        bytes_(sizes.in[0].elements() * static_cast<int64_t>(dtype_size(dtype))) {}

  Fault run(const Arguments& arguments) noexcept override {
    const auto* indices = static_cast<const Index*>(arguments.in[1]);
    for (int64_t i = 0; i < count_; ++i)
      if (indices[i] < -size_ || indices[i] >= size_)
        return {"an index is outside the axis", static_cast<int64_t>(indices[i])};
    if (bytes_ == 0) return {};
    start_from(arguments.in[0], arguments.out[0], bytes_);
    if (how_ == ScatterCombine::none)
      visit_storage(dtype_, [&]<typename T>() {
        scatter<T>(indices, arguments, [](T& to, const T& from) { to = from; });
      });
    else
      visit_dtype<NumericTypes>(dtype_, [&]<typename T>() {
        scatter<T>(indices, arguments,
                   [how = how_](T& to, const T& from) { to = combined(how, to, from); });
      });
    return {};
  }

 private:
  static Strides other_steps(const Shape& data, size_t axis) {
    Strides steps = broadcast_strides(data, data);
    const Shape strides = strides_of(data);
    for (size_t i = 0; i < data.rank(); ++i) steps[i] = i == axis ? 0 : strides[i];
    return steps;
  }

  template <typename T, typename Apply>
  void scatter(const Index* indices, const Arguments& arguments, Apply&& apply) const {
    const T* updates = static_cast<const T*>(arguments.in[2]);
    T* to = static_cast<T*>(arguments.out[0]);
    const int64_t n = loop_.size(), step = loop_.step(1);
    loop_.rows([&](const std::array<int64_t, 2>& row) {
      for (int64_t i = 0; i < n; ++i) {
        const auto index = static_cast<int64_t>(indices[row[0] + i]);
        apply(to[row[1] + i * step + (index < 0 ? index + size_ : index) * stride_],
              updates[row[0] + i]);
      }
    });
  }

  DType dtype_;
  ScatterCombine how_;
  StridedLoop<2> loop_;
  int64_t count_, size_, stride_, bytes_;
};

/// Sizes that do not fit together belong to the reference, which says so.
class SlicesKernel : public Kernel {
 public:
  explicit SlicesKernel(const Node& node) : node_(node) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Shape &data = sizes.in[0], &indices = sizes.in[1], &updates = sizes.in[2];
    if (indices.rank() == 0) return nullptr;
    const auto tuple = static_cast<size_t>(indices.back());
    if (tuple > data.rank()) return nullptr;
    Shape wanted;
    for (size_t axis = 0; axis + 1 < indices.rank(); ++axis) wanted.push_back(indices[axis]);
    for (size_t axis = tuple; axis < data.rank(); ++axis) wanted.push_back(data[axis]);
    if (!(wanted == updates)) return nullptr;
    return std::make_unique<BoundSlices>(sizes, node_.in[0]->type.dtype,
                                         *scatter_combine(node_.as<ScatterND>()->reduction));
  }

 private:
  const Node& node_;
};

class PlacesKernel : public Kernel {
 public:
  explicit PlacesKernel(const Node& node) : node_(node) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Shape &data = sizes.in[0], &indices = sizes.in[1], &updates = sizes.in[2];
    if (data.rank() == 0 || data.rank() != indices.rank() || !(indices == updates)) return nullptr;
    const auto& attrs = *node_.as<ScatterElements>();
    const size_t axis = normalize_axis(attrs.axis, data.rank());
    for (size_t i = 0; i < data.rank(); ++i)
      if (i != axis && indices[i] > data[i]) return nullptr;
    const DType dtype = node_.in[0]->type.dtype;
    const auto how = *scatter_combine(attrs.reduction);
    if (node_.in[1]->type.dtype == DType::i64)
      return std::make_unique<BoundPlaces<int64_t>>(sizes, axis, dtype, how);
    return std::make_unique<BoundPlaces<int32_t>>(sizes, axis, dtype, how);
  }

 private:
  const Node& node_;
};

Verdict accepts_data(const KernelQuery& query, const std::string& reduction) {
  if (query.in_dtype(0) == DType::string) return no("strings are no plain elements");
  if (reduction != "none" && !NumericTypes::contains(query.in_dtype(0)))
    return no("elements that cannot be combined");
  return yes();
}

Verdict accepts_slices(const KernelQuery& query) {
  if (query.in_dtype(1) != DType::i64) return no("indices of a rare type");
  return accepts_data(query, query.attrs<ScatterND>().reduction);
}

Verdict accepts_places(const KernelQuery& query) {
  if (query.in_dtype(1) != DType::i64 && query.in_dtype(1) != DType::i32)
    return no("indices of a rare type");
  return accepts_data(query, query.attrs<ScatterElements>().reduction);
}

template <typename K>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<K>(query.node);
}

}  // namespace

namespace ops {
void register_scatter_cpu(Kernels& kernels) {
  kernels.add({.name = "scatter_nd/slices",
               .op = &ScatterND::op,
               .accepts = accepts_slices,
               .prepare = prepare<SlicesKernel>,
               .overwrites = first_over_first});
  kernels.add({.name = "scatter_elements/places",
               .op = &ScatterElements::op,
               .accepts = accepts_places,
               .prepare = prepare<PlacesKernel>,
               .overwrites = first_over_first});
}
}  // namespace ops
}  // namespace dais
