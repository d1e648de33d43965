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
    EXPECT_GE(check_rows(Struct{}, {x, Tensor::ints(axes)}, rounding, {1}),
              axes.size() == 2 ? 0 : 1);
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
