#include "ops/topk/topk.h"
#include "runtime/row_test.h"

namespace dais {
namespace {

template <typename T>
void check(const Shape& shape, int64_t k, int64_t axis, double scale) {
  for (const bool largest : {true, false})
    EXPECT_GT(
        check_rows(TopK{.axis = axis, .largest = largest},
                   {sample<T>(shape, scale), Tensor::ints(std::vector<int64_t>{k})}, {}, {1}, 2),
        0);
}

TEST(TopKRows, AgreeWithTheReference) {
  check<float>({3, 1000}, 5, -1, 4);
  check<float>({3, 1000}, 500, 1, 4);
  check<float>({20, 7, 9}, 20, 0, 4);
  check<int32_t>({4, 300, 5}, 7, 1, 3);  // many equal ones
  check<uint8_t>({2, 900}, 30, -1, 9);
  check<Float16>({5, 64}, 64, -1, 4);
  check<float>({4, 6}, 0, -1, 4);
}

TEST(TopKRows, ZerosAreEqualAndNaNIsLargest) {
  const Tensor x =
      Tensor::of<float>({8}, {0.0F, -0.0F, NAN, INFINITY, -INFINITY, 0.0F, -NAN, -1.0F});
  for (const bool largest : {true, false})
    EXPECT_GT(check_rows(TopK{.largest = largest}, {x, Tensor::ints(std::vector<int64_t>{8})}, {},
                         {1}, 2),
              0);
}

}  // namespace
}  // namespace dais
