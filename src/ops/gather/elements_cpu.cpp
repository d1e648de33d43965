// GatherElements and GatherND: indices are checked first, then elements or runs are copied.
#include <algorithm>
#include <cstring>

#include "base/threads.h"
#include "ops/gather/gather.h"
#include "ops/gather/rows_cpu.h"
#include "ops/strided.h"

namespace dais {
namespace {

constexpr int64_t kParallelBytes = 64 * 1024;

/// The first index outside [-size, size), as a fault.
template <typename Index>
Fault outside(const Index* indices, int64_t count, int64_t size) {
  for (int64_t i = 0; i < count; ++i)
    if (indices[i] < -size || indices[i] >= size)
      return {"an index is outside the axis", static_cast<int64_t>(indices[i])};
  return {};
}

template <typename Index, typename T>
class BoundElements : public BoundKernel {
 public:
  BoundElements(const Sizes& sizes, size_t axis)
      : loop_(sizes.in[1],
              {broadcast_strides(sizes.in[1], sizes.in[1]), other_steps(sizes.in[0], axis)}),
        count_(sizes.in[1].elements()),
        size_(sizes.in[0][axis]),
        stride_(strides_of(sizes.in[0])[axis]) {}

  Fault run(const Arguments& arguments) noexcept override {
    const auto* indices = static_cast<const Index*>(arguments.in[1]);
    if (const Fault fault = outside(indices, count_, size_); fault.problem) return fault;
    const auto* from = static_cast<const T*>(arguments.in[0]);
    auto* to = static_cast<T*>(arguments.out[0]);
    const int64_t n = loop_.size(), step = loop_.step(1);
    const auto bytes = static_cast<int64_t>(sizeof(T));
    const int64_t grain = std::max<int64_t>(1, kParallelBytes / std::max<int64_t>(1, n * bytes));
    parallel_for(loop_.count_rows(), grain, [&](int64_t first, int64_t last) {
      loop_.rows(first, last, [&](const std::array<int64_t, 2>& row) {
        const Index* at = indices + row[0];
        const T* source = from + row[1];
        T* target = to + row[0];
        for (int64_t i = 0; i < n; ++i) {
          const auto index = static_cast<int64_t>(at[i]);
          target[i] = source[i * step + (index < 0 ? index + size_ : index) * stride_];
        }
      });
    });
    return {};
  }

 private:
  /// Steps of the data along the other axes.
  static Strides other_steps(const Shape& data, size_t axis) {
    Strides steps = broadcast_strides(data, data);
    const Shape strides = strides_of(data);
    for (size_t i = 0; i < data.rank(); ++i) steps[i] = i == axis ? 0 : strides[i];
    return steps;
  }

  StridedLoop<2> loop_;
  int64_t count_, size_, stride_;
};

template <typename Index>
class BoundTuples : public BoundKernel {
 public:
  BoundTuples(const Sizes& sizes, size_t batch, size_t element_size) {
    const Shape &data = sizes.in[0], &indices = sizes.in[1];
    tuple_ = static_cast<size_t>(indices.back());
    count_ = indices.elements(0, indices.rank() - 1);
    per_batch_ = indices.elements(batch, indices.rank() - 1);
    const auto bytes = static_cast<int64_t>(element_size);
    run_bytes_ = data.elements(batch + tuple_, data.rank()) * bytes;
    batch_bytes_ = data.elements(batch, data.rank()) * bytes;
    const Shape strides = strides_of(data);
    for (size_t k = 0; k < tuple_; ++k) {
      sizes_[k] = data[batch + k];
      steps_[k] = strides[batch + k] * bytes;
    }
  }

  Fault run(const Arguments& arguments) noexcept override {
    const auto* indices = static_cast<const Index*>(arguments.in[1]);
    const auto tuple = static_cast<int64_t>(tuple_);
    for (int64_t i = 0; i < count_; ++i)
      for (size_t k = 0; k < tuple_; ++k)
        if (const Fault fault =
                outside(indices + i * tuple + static_cast<int64_t>(k), 1, sizes_[k]);
            fault.problem)
          return fault;
    if (run_bytes_ == 0) return {};
    const auto* from = static_cast<const std::byte*>(arguments.in[0]);
    auto* to = static_cast<std::byte*>(arguments.out[0]);
    parallel_for(count_, std::max<int64_t>(1, kParallelBytes / run_bytes_),
                 [&](int64_t first, int64_t last) {
                   for (int64_t i = first; i < last; ++i) {
                     const std::byte* source = from + offset(indices, i);
                     switch (run_bytes_) {
                       case 4: std::memcpy(to + i * 4, source, 4); break;
                       case 8: std::memcpy(to + i * 8, source, 8); break;
                       default:
                         std::memcpy(to + i * run_bytes_, source, static_cast<size_t>(run_bytes_));
                     }
                   }
                 });
    return {};
  }

 private:
  int64_t offset(const Index* indices, int64_t i) const {
    int64_t at = i / per_batch_ * batch_bytes_;
    for (size_t k = 0; k < tuple_; ++k) {
      const auto index =
          static_cast<int64_t>(indices[i * static_cast<int64_t>(tuple_) + static_cast<int64_t>(k)]);
      at += (index < 0 ? index + sizes_[k] : index) * steps_[k];
    }
    return at;
  }

  size_t tuple_ = 0;
  int64_t count_ = 0, per_batch_ = 0, run_bytes_ = 0, batch_bytes_ = 0;
  Strides sizes_{}, steps_{};
};

/// Sizes that break the rules belong to the reference, which says what is wrong.
class ElementsKernel : public Kernel {
 public:
  explicit ElementsKernel(const Node& node) : node_(node) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Shape &data = sizes.in[0], &indices = sizes.in[1];
    if (data.rank() != indices.rank() || data.rank() == 0) return nullptr;
    const size_t axis = normalize_axis(node_.as<GatherElements>()->axis, data.rank());
    for (size_t i = 0; i < data.rank(); ++i)
      if (i != axis && indices[i] > data[i]) return nullptr;
    return node_.in[1]->type.dtype == DType::i64 ? bind_as<int64_t>(sizes, axis)
                                                 : bind_as<int32_t>(sizes, axis);
  }

 private:
  template <typename Index>
  std::unique_ptr<BoundKernel> bind_as(const Sizes& sizes, size_t axis) const {
    switch (dtype_size(node_.in[0]->type.dtype)) {
      case 1: return std::make_unique<BoundElements<Index, uint8_t>>(sizes, axis);
      case 2: return std::make_unique<BoundElements<Index, uint16_t>>(sizes, axis);
      case 4: return std::make_unique<BoundElements<Index, uint32_t>>(sizes, axis);
      default: return std::make_unique<BoundElements<Index, uint64_t>>(sizes, axis);
    }
  }

  const Node& node_;
};

class TuplesKernel : public Kernel {
 public:
  explicit TuplesKernel(const Node& node) : node_(node) {}

  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Shape &data = sizes.in[0], &indices = sizes.in[1];
    const auto batch = static_cast<size_t>(node_.as<GatherND>()->batch_dims);
    if (batch >= indices.rank() || batch > data.rank()) return nullptr;
    if (indices.back() < 0 || indices.back() > static_cast<int64_t>(data.rank() - batch))
      return nullptr;
    for (size_t i = 0; i < batch; ++i)
      if (indices[i] != data[i]) return nullptr;
    const size_t size = dtype_size(node_.in[0]->type.dtype);
    if (node_.in[1]->type.dtype == DType::i64)
      return std::make_unique<BoundTuples<int64_t>>(sizes, batch, size);
    return std::make_unique<BoundTuples<int32_t>>(sizes, batch, size);
  }

 private:
  const Node& node_;
};

Verdict accepts(const KernelQuery& query) {
  if (query.in_dtype(0) == DType::string || dtype_size(query.in_dtype(0)) > 8)
    return no("elements longer than 8 bytes");
  if (query.in_dtype(1) != DType::i64 && query.in_dtype(1) != DType::i32)
    return no("indices of a rare type");
  return yes();
}

template <typename K>
std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<K>(query.node);
}

}  // namespace

void register_element_gathers(Kernels& kernels) {
  kernels.add({.name = "gather_elements/rows",
               .op = &GatherElements::op,
               .accepts = accepts,
               .prepare = prepare<ElementsKernel>});
  kernels.add({.name = "gather_nd/runs",
               .op = &GatherND::op,
               .accepts = accepts,
               .prepare = prepare<TuplesKernel>});
}

}  // namespace dais
