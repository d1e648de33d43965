// ScatterND that replaces slices: the data is copied (unless the result may stand in its place),
// then every index tuple's slice is.
#include <algorithm>
#include <cstring>

#include "base/threads.h"
#include "ops/scatter/scatter.h"
#include "ops/strided.h"
#include "runtime/kernel.h"

namespace dais {
namespace {

class BoundScatter : public BoundKernel {
 public:
  BoundScatter(const Sizes& sizes, size_t element_size) : data_(sizes.in[0]) {
    const Shape& indices = sizes.in[1];
    tuple_ = static_cast<size_t>(indices.back());
    tuples_ = indices.elements(0, indices.rank() - 1);
    bytes_ = data_.elements() * static_cast<int64_t>(element_size);
    slice_ = data_.elements(tuple_, data_.rank()) * static_cast<int64_t>(element_size);
    int64_t step = slice_;
    for (size_t axis = tuple_; axis-- > 0;) {
      steps_[axis] = step;
      step *= data_[axis];
    }
  }

  Fault run(const Arguments& arguments) noexcept override {
    const auto* indices = static_cast<const int64_t*>(arguments.in[1]);
    const auto* updates = static_cast<const std::byte*>(arguments.in[2]);
    auto* to = static_cast<std::byte*>(arguments.out[0]);
    for (int64_t i = 0; i < tuples_; ++i)
      for (size_t k = 0; k < tuple_; ++k) {
        const int64_t index = indices[i * static_cast<int64_t>(tuple_) + static_cast<int64_t>(k)];
        if (index < -data_[k] || index >= data_[k]) return {"an index is outside its axis", index};
      }
    if (bytes_ == 0) return {};
    if (to != arguments.in[0]) copy(static_cast<const std::byte*>(arguments.in[0]), to);
    // In order, on one thread: of repeated indices the last one wins. Neighbouring slices that
    // follow each other on both sides are moved together.
    int64_t start = 0, first = tuples_ > 0 ? offset(indices) : 0;
    for (int64_t i = 1; i <= tuples_; ++i) {
      const int64_t next =
          i < tuples_ ? offset(indices + i * static_cast<int64_t>(tuple_)) : int64_t{-1};
      if (i < tuples_ && next == first + (i - start) * slice_) continue;
      std::memcpy(to + first, updates + start * slice_, static_cast<size_t>((i - start) * slice_));
      start = i;
      first = next;
    }
    return {};
  }

 private:
  void copy(const std::byte* from, std::byte* to) const {
    parallel_for(bytes_, int64_t{256} * 1024, [&](int64_t first, int64_t last) {
      std::memcpy(to + first, from + first, static_cast<size_t>(last - first));
    });
  }

  int64_t offset(const int64_t* tuple) const {
    int64_t at = 0;
    for (size_t k = 0; k < tuple_; ++k)
      at += (tuple[k] < 0 ? tuple[k] + data_[k] : tuple[k]) * steps_[k];
    return at;
  }

  Shape data_;
  Strides steps_{};
  size_t tuple_ = 0;
  int64_t tuples_ = 0, bytes_ = 0, slice_ = 0;
};

class ScatterKernel : public Kernel {
 public:
  explicit ScatterKernel(const Node& node) : node_(node) {}
  /// The reference explains sizes that do not fit together.
  std::unique_ptr<BoundKernel> bind(const Sizes& sizes) const override {
    const Shape &data = sizes.in[0], &indices = sizes.in[1], &updates = sizes.in[2];
    if (indices.rank() == 0) return nullptr;
    const auto tuple = static_cast<size_t>(indices.back());
    if (tuple > data.rank()) return nullptr;
    Shape wanted;
    for (size_t axis = 0; axis + 1 < indices.rank(); ++axis) wanted.push_back(indices[axis]);
    for (size_t axis = tuple; axis < data.rank(); ++axis) wanted.push_back(data[axis]);
    if (!(wanted == updates)) return nullptr;
    return std::make_unique<BoundScatter>(sizes, dtype_size(node_.in[0]->type.dtype));
  }

 private:
  const Node& node_;
};

Verdict accepts(const KernelQuery& query) {
  if (query.attrs<ScatterND>().reduction != "none") return no("combines old and new elements");
  if (query.in_dtype(0) == DType::string) return no("strings are no plain elements");
  return query.in_dtype(1) == DType::i64 ? yes() : no("indices of a rare type");
}

std::unique_ptr<Kernel> prepare(const KernelQuery& query) {
  return std::make_unique<ScatterKernel>(query.node);
}

}  // namespace

namespace ops {
void register_scatter_cpu(Kernels& kernels) {
  kernels.add({.name = "scatter_nd/slices",
               .op = &ScatterND::op,
               .accepts = accepts,
               .prepare = prepare,
               .overwrites = first_over_first});
}
}  // namespace ops
}  // namespace dais
