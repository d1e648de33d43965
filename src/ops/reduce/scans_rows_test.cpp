#include "ops/reduce/reduce.h"
#include "runtime/row_test.h"

namespace dais {
namespace {

template <typename Struct, typename T>
void check_scan(double scale) {
  for (const bool exclusive : {false, true})
    for (const bool reverse : {false, true})
      for (const int64_t axis : {0, 1, -1})
        EXPECT_GT(check_rows(Struct{exclusive, reverse},
                             {sample<T>({3, 70, 90}, scale),
                              Tensor::ints(std::vector<int64_t>{axis}).reshaped({})}),
                  0);
}

TEST(ScanRows, AgreeWithTheReference) {
  check_scan<CumSum, float>(4);
  check_scan<CumSum, double>(4);
  check_scan<CumSum, int64_t>(100);
  check_scan<CumSum, int32_t>(2e9);
  check_scan<CumProd, float>(1.2);
  check_scan<CumProd, int32_t>(5);
}

template <typename Struct>
void check_arg(const Tensor& x) {
  for (const bool last : {false, true})
    for (const bool keep : {false, true})
      for (int64_t axis = 0; axis < std::ssize(x.shape().dims()); ++axis)
        EXPECT_GT(check_rows(Struct{axis, keep, last}, {x}), 0);
}

TEST(ArgRows, AgreeWithTheReference) {
  Tensor coarse = sample<float>({5, 37, 100}, 3);
  for (float& value : coarse.data<float>()) value = std::round(value);  // many equal ones
  Tensor odd = coarse.clone();
  for (size_t i = 11; i < odd.data<float>().size(); i += 997) odd.data<float>()[i] = NAN;
  Tensor low(DType::f32, {2, 33});
  for (float& value : low.data<float>()) value = -INFINITY;
  for (const Tensor& x : {coarse, odd, low, sample<float>({3, 5}), sample<float>({1, 1000})}) {
    check_arg<ArgMax>(x);
    check_arg<ArgMin>(x);
  }
}

}  // namespace
}  // namespace dais
