#include "autodiff/gradient_case.h"
#include "ops/cast/cast.h"
#include "ops/concat/concat.h"
#include "ops/gather/gather.h"
#include "ops/pad/pad.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/slice/slice.h"
#include "ops/split/split.h"
#include "ops/tile/tile.h"
#include "ops/transpose/transpose.h"
#include "ops/trilu/trilu.h"

namespace dais {
namespace {

void views(GradientCases& cases) {
  cases.add(Reshape{}, {batched({4, 6}), fixed_ints({0, 2, -1})});
  cases.add(Reshape{}, {real({4, 6}), fixed_ints({24})});
  cases.add(Flatten{.axis = 2}, {batched({2, 3, 2})});
  cases.add(Squeeze{}, {batched({4, 1, 3}), fixed_ints({1})});
  cases.add(Squeeze{}, {real({1, 3, 1})});
  cases.add(Unsqueeze{}, {batched({4, 3}), fixed_ints({0, -1})});
  cases.add(Expand{}, {real({3, 1}), fixed_ints({2, 3, 4})});
  cases.add(Expand{}, {batched({2, 1, 3}), fixed_ints({1, 4, 1})});
  cases.add(Transpose{}, {batched({2, 3, 4})});
  cases.add(Transpose{.perm = {2, 0, 1}}, {batched({2, 3, 4})});
  cases.add(Cast{.to = DType::f64}, {batched({4})});
}

void pieces(GradientCases& cases) {
  cases.add(Concat{.axis = 1}, {batched({2, 3}), batched({2, 1}), batched({2, 2})});
  cases.add(Concat{.axis = -2}, {real({2, 3}), batched({4, 3})});
  cases.add(Concat{.axis = 0}, {real({2, 3})});
  cases.add(Split{.axis = 1}, {batched({2, 6}), fixed_ints({1, 3, 2})}, 3);
  cases.add(Split{.axis = 1}, {batched({2, 6}), fixed_ints({1, 3, 2})}, 3, {1});
  cases.add(Split{.axis = 0, .num_outputs = 2}, {real({5, 2})}, 2);
  const auto bounds = [](std::vector<int64_t> a, std::vector<int64_t> b, std::vector<int64_t> axes,
                         std::vector<int64_t> steps) {
    return std::vector<CaseInput>{fixed_ints(a), fixed_ints(b), fixed_ints(axes),
                                  fixed_ints(steps)};
  };
  for (const auto& rest : {bounds({1}, {5}, {1}, {2}), bounds({-1}, {-100}, {1}, {-2}),
                           bounds({2}, {2}, {1}, {1}), bounds({0, 1}, {9, 3}, {0, 1}, {1, 1})}) {
    std::vector<CaseInput> in{batched({3, 6})};
    in.insert(in.end(), rest.begin(), rest.end());
    cases.add(Slice{}, in);
  }
  cases.add(Slice{}, {real({4, 3}), fixed_ints({1}), fixed_ints({3})});
  cases.add(SliceBackward{}, {real({2, 3}), fixed_ints({4, 3}), fixed_ints({1}), fixed_ints({3})});
  cases.add(Trilu{.upper = true}, {batched({2, 3, 4})});
  cases.add(Trilu{.upper = false}, {batched({2, 4, 3}), fixed(Tensor::scalar<int64_t>(-1))});
  cases.add(Tile{}, {batched({2, 3}), fixed_ints({2, 3})});
  cases.add(Tile{}, {real({3}), fixed_ints({0})});
}

void paddings(GradientCases& cases) {
  const auto value = real({}, {.low = 0.5, .high = 0.6});
  cases.add(Pad{}, {batched({2, 3}), fixed_ints({0, 1, 0, 2}), value});
  cases.add(Pad{}, {real({3, 4}), fixed_ints({1, -1, -1, 2})});
  cases.add(Pad{}, {batched({2, 4}), fixed_ints({2, -1}), value, fixed_ints({-1})});
  for (const char* mode : {"reflect", "edge", "wrap"}) {
    cases.add(Pad{.mode = mode}, {batched({2, 4}), fixed_ints({0, 3, 0, 5})});
    cases.add(Pad{.mode = mode}, {real({3, 4}), fixed_ints({2, -1}), none(), fixed_ints({1})});
    cases.add(PadBackward{.mode = mode},
              {real({2, 7}), fixed_ints({2, 4}), fixed_ints({0, 1, 0, 2})});
  }
}

void lookups(GradientCases& cases) {
  const auto indices = fixed(Tensor::of<int64_t>(Shape{2, 2}, {2, 0, -1, 2}));
  cases.add(Gather{.axis = 0}, {real({3, 4}), indices});
  cases.add(Gather{.axis = 1}, {batched({2, 3, 2}), indices});
  cases.add(Gather{.axis = 0}, {real({3, 4}), fixed(Tensor::scalar<int64_t>(1))});
  cases.add(GatherBackward{.axis = 1}, {real({2, 2, 2}), indices, fixed_ints({2, 3})});
  cases.add(GatherElements{.axis = 1}, {real({2, 3}), indices});
  cases.add(GatherElements{.axis = 0},
            {real({3, 2}), fixed(Tensor::of<int64_t>(Shape{2, 2}, {2, 0, -1, 0}))});
  const auto tuples = fixed(Tensor::of<int64_t>(Shape{2, 2}, {1, 0, -1, 2}));
  cases.add(GatherND{}, {real({2, 3}), tuples});
  cases.add(GatherND{}, {real({2, 3, 2}), tuples});
  cases.add(GatherND{.batch_dims = 1},
            {real({2, 3, 2}), fixed(Tensor::of<int64_t>(Shape{2, 2, 1}, {1, 1, 2, 0}))});
  cases.add(GatherNDBackward{}, {real({2, 2}), tuples, fixed_ints({2, 3, 2})});
}

template <typename Struct>
void reduction(GradientCases& cases, const Spread& spread = {}) {
  cases.add(Struct{}, {batched({2, 3, 2}, spread), fixed_ints({-1})});
  cases.add(Struct{.keepdims = false}, {batched({2, 3, 2}, spread), fixed_ints({1})});
  cases.add(Struct{.keepdims = false}, {real({2, 3, 2}, spread), fixed_ints({2, 0})});
  cases.add(Struct{.keepdims = false}, {batched({4, 3}, spread)});
  cases.add(Struct{}, {batched({4, 3}, spread)});
  cases.add(Struct{.noop_with_empty_axes = true}, {batched({4, 3}, spread)});
}

void reductions(GradientCases& cases) {
  const Spread positive{.low = 0.3, .high = 2};
  reduction<ReduceSum>(cases);
  reduction<ReduceMean>(cases);
  reduction<ReduceMax>(cases);
  reduction<ReduceMin>(cases);
  reduction<ReduceProd>(cases);
  reduction<ReduceL1>(cases);
  reduction<ReduceL2>(cases);
  reduction<ReduceLogSum>(cases, positive);
  reduction<ReduceLogSumExp>(cases);
  reduction<ReduceSumSquare>(cases);
  cases.add(ReduceProd{}, {[] {
                             CaseInput x = real({2, 4});
                             x.value.data<double>()[1] = 0;
                             x.value.data<double>()[5] = x.value.data<double>()[6] = 0;
                             return x;
                           }(),
                           fixed_ints({1})});
  cases.add(SumTo{}, {real({2, 3, 4}), fixed_ints({3, 1})});
}

void scans(GradientCases& cases) {
  const auto axis = fixed(Tensor::scalar<int64_t>(1));
  for (const bool exclusive : {false, true})
    for (const bool reverse : {false, true}) {
      cases.add(CumSum{exclusive, reverse}, {batched({2, 4}), axis});
      cases.add(CumProd{exclusive, reverse}, {batched({2, 4}), axis});
      CaseInput zeros = real({2, 4, 2});
      for (const size_t i : {2, 6, 9}) zeros.value.data<double>()[i] = 0;
      cases.add(CumProd{exclusive, reverse}, {zeros, axis});
    }
}

}  // namespace

void shape_cases(GradientCases& cases) {
  views(cases);
  pieces(cases);
  paddings(cases);
  lookups(cases);
  reductions(cases);
  scans(cases);
}

}  // namespace dais
