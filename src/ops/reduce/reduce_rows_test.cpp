#include "ops/reduce/reduce.h"
#include "runtime/row_test.h"

namespace dais {
namespace {

template <typename Struct>
void check_reduction() {
  const Tensor x = sample<float>({3, 5, 40, 7});
  const RowTolerance rounding{1e-6, 1e-6};
  for (const auto& axes : std::vector<std::vector<int64_t>>{
           {3}, {-1, 2}, {1}, {0}, {2, 1}, {0, 1, 2, 3}, {0, 3}, {1, 3}}) {
    EXPECT_GT(check_rows(Struct{}, {x, Tensor::ints(axes)}, rounding, {1}), 0);
    check_rows(Struct{.keepdims = false}, {x, Tensor::ints(axes)}, rounding, {1});
  }
  EXPECT_GT(check_rows(Struct{}, {x}, rounding), 0);
  EXPECT_GT(
      check_rows(Struct{}, {sample<float>({2, 600, 700}), Tensor::ints(std::vector<int64_t>{1})},
                 rounding, {1}),
      0);
  check_rows(Struct{}, {Tensor(DType::f32, {2, 0, 3}), Tensor::ints(std::vector<int64_t>{1})},
             rounding, {1});
}

template <typename Struct, typename T>
void check_integers(double scale) {
  const Tensor x = sample<T>({3, 5, 40, 7}, scale);
  for (const auto& axes :
       std::vector<std::vector<int64_t>>{{3}, {1}, {0}, {2, 1}, {0, 1, 2, 3}, {0, 3}, {1, 3}})
    EXPECT_GT(check_rows(Struct{}, {x, Tensor::ints(axes)}, {}, {1}), 0);
  EXPECT_GT(
      check_rows(Struct{}, {Tensor(dtype_of<T>, {2, 0, 3}), Tensor::ints(std::vector<int64_t>{1})},
                 {}, {1}),
      0);
}

TEST(ReduceRows, IntegersAndProducts) {
  check_integers<ReduceSum, int64_t>(1e18);
  check_integers<ReduceSum, int32_t>(2e9);
  check_integers<ReduceMax, int64_t>(1e18);
  check_integers<ReduceMin, int32_t>(2e9);
  check_integers<ReduceProd, int64_t>(9);
  check_integers<ReduceL1, int32_t>(100);
  check_integers<ReduceSumSquare, int64_t>(1e6);
  const Tensor x = sample<float>({3, 5, 40, 7}, 1.5);
  EXPECT_GT(check_rows(ReduceProd{}, {x, Tensor::ints(std::vector<int64_t>{2})}, {1e-6, 1e-6}, {1}),
            0);
}

TEST(ReduceRows, AgreeWithReference) {
  check_reduction<ReduceSum>();
  check_reduction<ReduceMean>();
  check_reduction<ReduceMax>();
  check_reduction<ReduceMin>();
  check_reduction<ReduceL1>();
  check_reduction<ReduceL2>();
  check_reduction<ReduceSumSquare>();
}

}  // namespace
}  // namespace dais
