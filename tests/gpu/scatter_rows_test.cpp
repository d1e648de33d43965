// Scattering on the device: which update wins, or in which order repeated ones are combined. And
// gathering by tuples.
#include "ops/gather/gather.h"
#include "ops/scatter/scatter.h"
#include "watched_row.h"

namespace dais {
namespace {

Tensor floats(const Shape& shape, uint64_t seed = 1) { return sample<float>(shape, 4, seed); }
Tensor halves(const Shape& shape, uint64_t seed = 1) {
  return narrowed(floats(shape, seed), DType::f16);
}

TEST(ScatterRows, LetTheLastOfRepeatedIndicesWin) {
  const Tensor at = Tensor::of<int64_t>({2, 3}, {1, 1, 1, 0, 4, -1});
  watch_row(ScatterElements{.axis = 1}, {floats({2, 5}), at, floats({2, 3}, 2)});
  watch_row(ScatterND{},
            {floats({4, 3, 2}), Tensor::of<int64_t>({3, 1}, {2, -1, 2}), floats({3, 3, 2}, 2)});
  watch_row(ScatterND{},
            {halves({4, 3}), Tensor::of<int64_t>({2, 2}, {2, 1, 2, 1}), halves({2}, 2)});
}

TEST(ScatterRows, CombineRepeatedIndicesInTheirOrder) {
  const Tensor at = Tensor::of<int64_t>({2, 4}, {1, 1, 1, -4, 0, 4, -1, 4});
  const Tensor tuples = Tensor::of<int64_t>({4, 1}, {2, -1, 2, 2});
  for (const char* reduction : {"add", "mul", "min", "max"}) {
    const ScatterElements elements{.axis = 1, .reduction = reduction};
    watch_row(elements, {floats({2, 5}), at, floats({2, 4}, 2)});
    watch_row(elements, {sample<int64_t>({2, 5}, 9), at, sample<int64_t>({2, 4}, 9, 2)});
    watch_row(elements, {halves({2, 5}), at, halves({2, 4}, 2)},
              {.tolerance = RowTolerance{2e-3, 2e-3}});
    watch_row(ScatterElements{.axis = 0, .reduction = reduction},
              {floats({5, 32}), sample<int64_t>({9, 32}, 4), floats({9, 32}, 2)})
        .expect_coalesced_writes();
    watch_row(ScatterND{.reduction = reduction}, {floats({4, 3, 2}), tuples, floats({4, 3, 2}, 2)});
    watch_row(ScatterND{.reduction = reduction},
              {sample<int32_t>({4, 3}, 9), Tensor::of<int64_t>({2, 2}, {2, 1, 2, 1}),
               sample<int32_t>({2}, 9, 2)});
  }
}

TEST(ScatterRows, CachesAreWrittenAtEachEntrysPlace) {
  const Tensor starts = Tensor::of<int64_t>({2}, {4, 1});
  for (const char* mode : {"linear", "circular"}) {
    watch_row(TensorScatter{.mode = mode}, {floats({2, 3, 6, 4}), floats({2, 3, 2, 4}, 2), starts})
        .expect_coalesced_writes();
    watch_row(TensorScatter{.axis = 1, .mode = mode}, {halves({2, 6, 3}), halves({2, 2, 3}, 2)});
  }
  watch_row(TensorScatter{.mode = "circular"},
            {floats({2, 6, 4}), floats({2, 6, 4}, 2), Tensor::of<int32_t>({2}, {5, 13})});
}

TEST(ScatterRows, GatherByTuples) {
  const Tensor tuples = Tensor::of<int64_t>({2, 3, 2}, {0, 1, -1, 2, 1, 0, 1, 1, 0, 0, -2, -1});
  watch_row(GatherND{}, {floats({2, 3, 8}), tuples}).expect_coalesced_writes();
  watch_row(GatherND{}, {halves({2, 3}), tuples});
  watch_row(GatherND{.batch_dims = 1}, {floats({2, 2, 3, 5}), tuples});
}

}  // namespace
}  // namespace dais
