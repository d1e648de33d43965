#include "ops/run_op.h"

namespace dais {
namespace {

TEST(QLinear, AddConcatAndMissingZeroPoints) {
  const Tensor a = Tensor::of<int8_t>({2}, {10, -128}), b = Tensor::of<int8_t>({2}, {4, -128});
  const Tensor half = Tensor::scalar(0.5f), one = Tensor::scalar(1.0f);
  // 10 * 0.5 + (4 - 1) = 8; the second saturates.
  const auto sum = run_import("com.microsoft", "QLinearAdd", 1, {},
                              {a, half, {}, b, one, Tensor::scalar<int8_t>(1), one, {}});
  EXPECT_TRUE(sum[0].identical(Tensor::of<int8_t>({2}, {8, -128})));
  const auto both = run_import("com.microsoft", "QLinearConcat", 1, {{"axis", int64_t{0}}},
                               {half, Tensor::scalar<int8_t>(0), a, half, Tensor::scalar<int8_t>(0),
                                b, one, Tensor::scalar<int8_t>(0)});
  EXPECT_TRUE(both[0].identical(Tensor::of<int8_t>({4}, {10, -128, 8, -128})));
}

}  // namespace
}  // namespace dais
