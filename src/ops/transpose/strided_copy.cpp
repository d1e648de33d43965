#include "ops/transpose/strided_copy.h"

#include <algorithm>

namespace dais {

void copy_strided(const Shape& space, const Tensor& from, int64_t from_start,
                  const Strides& from_steps, Tensor& to, int64_t to_start,
                  const Strides& to_steps) {
  const StridedLoop<2> loop(space, {to_steps, from_steps});
  const int64_t size = loop.size(), to_step = loop.step(0), from_step = loop.step(1);
  visit_storage(from.dtype(), [&]<typename T>() {
    T* target = to.storage<T>() + to_start;
    const T* source = from.storage<T>() + from_start;
    loop.rows([&](const std::array<int64_t, 2>& at) {
      T* t = target + at[0];
      const T* s = source + at[1];
      if (to_step == 1 && from_step == 1)
        std::copy_n(s, size, t);
      else
        for (int64_t i = 0; i < size; ++i) t[i * to_step] = s[i * from_step];
    });
  });
}

Strides dense_steps(const Shape& shape) { return broadcast_strides(shape, shape); }

void copy_transposed(const Tensor& from, const std::vector<size_t>& perm, Tensor& to) {
  const Shape strides = strides_of(from.shape());
  Strides steps{};
  for (size_t axis = 0; axis < perm.size(); ++axis) steps[axis] = strides[perm[axis]];
  copy_strided(to.shape(), from, 0, steps, to, 0, dense_steps(to.shape()));
}

}  // namespace dais
