#include "autodiff/gradient_case.h"
#include "ops/matmul/matmul.h"

namespace dais {

void product_cases(GradientCases& cases) {
  cases.add(MatMul{}, {batched({4, 3}), real({3, 2})});
  cases.add(MatMul{}, {batched({2, 2, 3}), real({3, 4})});
  cases.add(MatMul{}, {batched({2, 2, 3}), batched({2, 3, 4})});
  cases.add(MatMul{}, {real({2, 1, 2, 3}), real({3, 3, 4})});
  cases.add(MatMul{}, {real({3}), real({3})});
  cases.add(MatMul{}, {real({3}), real({3, 2})});
  cases.add(MatMul{}, {batched({2, 4, 3}), real({3})});
  cases.add(MatMul{}, {real({3}), batched({2, 3, 4})});
  for (const bool a : {false, true})
    for (const bool b : {false, true}) {
      const Gemm attrs{.alpha = 0.5f, .beta = -2, .trans_a = a, .trans_b = b};
      const CaseInput left = a ? real({3, 4}) : batched({4, 3});
      const CaseInput right = b ? real({2, 3}) : real({3, 2});
      cases.add(attrs, {left, right});
      cases.add(attrs, {left, right, real({2})});
      cases.add(attrs, {left, right, real({4, 1})});
      cases.add(attrs, {left, right, real({})});
    }
}

}  // namespace dais
