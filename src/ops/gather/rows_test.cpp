#include "ops/gather/gather.h"
#include "runtime/row_test.h"

namespace dais {
namespace {

TEST(GatherRows, ElementsAgreeWithTheReference) {
  const Tensor data = sample<float>({3, 50, 7});
  for (const int64_t axis : {0, 1, 2, -1}) {
    const GatherElements attrs{axis};
    const int64_t size = data.shape()[axis < 0 ? 2 : static_cast<size_t>(axis)];
    EXPECT_GT(check_rows(attrs, {data, sample_indices<int64_t>({3, 50, 7}, size)}), 0);
    EXPECT_GT(check_rows(attrs, {data, sample_indices<int32_t>({2, 9, 5}, size)}), 0);
  }
  EXPECT_GT(check_rows(GatherElements{1},
                       {sample<uint8_t>({40, 600}), sample_indices<int64_t>({40, 600}, 600)}),
            0);
  EXPECT_GT(check_rows(GatherElements{0}, {sample<int64_t>({8}), Tensor(DType::i64, {0})}), 0);
}

TEST(GatherRows, TuplesAgreeWithTheReference) {
  const Tensor data = sample<float>({4, 5, 6, 7});
  EXPECT_GT(check_rows(GatherND{}, {data, sample_indices<int64_t>({9, 2}, 4)}), 0);
  EXPECT_GT(check_rows(GatherND{}, {data, sample_indices<int32_t>({3, 3, 4}, 4)}), 0);
  EXPECT_GT(check_rows(GatherND{1}, {data, sample_indices<int64_t>({4, 3, 1}, 5)}), 0);
  EXPECT_GT(check_rows(GatherND{2}, {data, sample_indices<int64_t>({4, 5, 2}, 6)}), 0);
  EXPECT_GT(
      check_rows(GatherND{}, {sample<uint8_t>({300, 2}), sample_indices<int64_t>({999, 1}, 300)}),
      0);
}

}  // namespace
}  // namespace dais
