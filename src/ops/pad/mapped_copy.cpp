#include "ops/pad/mapped_copy.h"

#include <algorithm>

namespace dais {
namespace {

template <typename T>
struct MappedCopy {
  const T* from;
  T fill;
  std::vector<std::vector<int64_t>> offsets;  ///< maps times strides; -1 stays
  std::vector<int64_t> block;                 ///< elements of the result below each axis

  T* run(size_t axis, int64_t at, T* to) const {
    if (axis == offsets.size()) {
      *to = from[at];
      return to + 1;
    }
    if (axis + 1 == offsets.size()) {
      for (int64_t offset : offsets[axis]) *to++ = offset < 0 ? fill : from[at + offset];
      return to;
    }
    for (int64_t offset : offsets[axis])
      to = offset < 0 ? std::fill_n(to, block[axis], fill) : run(axis + 1, at + offset, to);
    return to;
  }
};

}  // namespace

void copy_mapped(const Tensor& from, const IndexMaps& maps, const Tensor& fill, Tensor& to) {
  if (to.elements() == 0) return;
  const Shape strides = strides_of(from.shape());
  visit_storage(from.dtype(), [&]<typename T>() {
    MappedCopy<T> copy{from.storage<T>(), fill ? *fill.storage<T>() : T{}, maps, {}};
    for (size_t axis = 0; axis < maps.size(); ++axis) {
      for (int64_t& index : copy.offsets[axis])
        if (index >= 0) index *= strides[axis];
      copy.block.push_back(to.shape().elements(axis + 1, to.rank()));
    }
    copy.run(0, 0, to.storage<T>());
  });
}

}  // namespace dais
