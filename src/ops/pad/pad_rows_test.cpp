#include "ops/pad/pad.h"
#include "runtime/row_test.h"

namespace dais {
namespace {

Tensor pads(std::initializer_list<int64_t> values) {
  return Tensor::ints(std::vector<int64_t>(values));
}

TEST(PadRows, AgreeWithTheReference) {
  for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
    const Pad attrs{mode};
    const Tensor planes = sample<float>({2, 3, 9, 40});
    for (const auto& list : {pads({0, 0, 3, 4, 0, 0, 2, 5}), pads({0, 0, -2, 1, 0, 0, 3, -7}),
                             pads({1, 0, 0, 0, 2, 0, 0, 0}), pads({0, 0, 1, 0, 0, 0, 1, 0})})
      EXPECT_GT(check_rows(attrs, {planes, list}, {}, {1}), 0) << mode;
    EXPECT_GT(check_rows(attrs, {sample<uint8_t>({1, 70}), pads({0, 64, 0, 64})}, {}, {1}), 0);
    EXPECT_GT(
        check_rows(attrs, {sample<int64_t>({4, 5}), pads({6, 9}), {}, pads({-1})}, {}, {1, 3}), 0);
    EXPECT_GT(check_rows(attrs, {sample<Float16>({3, 5, 4}), pads({1, 1, 0, 1, 1, 0})}, {}, {1}),
              0);
  }
}

}  // namespace
}  // namespace dais
