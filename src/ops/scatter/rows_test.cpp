#include "ops/scatter/scatter.h"
#include "runtime/row_test.h"

namespace dais {
namespace {

constexpr const char* kReductions[] = {"none", "add", "mul", "min", "max"};

TEST(ScatterRows, ElementsAgreeWithTheReference) {
  for (const char* reduction : kReductions)
    for (const int64_t axis : {0, 1, -1}) {
      const ScatterElements attrs{axis, reduction};
      const Shape shape{4, 20, 6};
      const int64_t size = shape[axis < 0 ? 2 : static_cast<size_t>(axis)];
      EXPECT_GT(check_rows(attrs, {sample<float>(shape), sample_indices<int64_t>({4, 20, 6}, size),
                                   sample<float>({4, 20, 6}, 4, 2)}),
                0);
      EXPECT_GT(check_rows(attrs, {sample<int64_t>(shape), sample_indices<int32_t>({3, 9, 2}, size),
                                   sample<int64_t>({3, 9, 2}, 4, 2)}),
                0);
      EXPECT_GT(check_rows(attrs, {sample<Float16>(shape), sample_indices<int64_t>({1, 4, 5}, size),
                                   sample<Float16>({1, 4, 5}, 4, 2)}),
                0);
    }
}

TEST(ScatterRows, SlicesAgreeWithTheReference) {
  for (const char* reduction : kReductions) {
    const ScatterND attrs{reduction};
    EXPECT_GT(check_rows(attrs, {sample<float>({5, 6, 7}), sample_indices<int64_t>({40, 2}, 5),
                                 sample<float>({40, 7}, 4, 2)}),
              0);
    EXPECT_GT(check_rows(attrs, {sample<uint8_t>({50}), sample_indices<int64_t>({40, 1}, 50),
                                 sample<uint8_t>({40}, 200, 2)}),
              0);
  }
}

}  // namespace
}  // namespace dais
