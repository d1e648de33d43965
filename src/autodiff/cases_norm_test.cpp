#include "autodiff/gradient_case.h"
#include "ops/all_reduce/all_reduce.h"
#include "ops/loss/loss.h"
#include "ops/norm/norm.h"
#include "ops/random/random.h"
#include "ops/softmax/softmax.h"

namespace dais {
namespace {

template <typename Struct>
void losses(GradientCases& cases, const CaseInput& x, const CaseInput& deep) {
  const auto target = fixed(Tensor::of<int64_t>(Shape{4}, {2, 0, 1, 2}));
  const auto grid = fixed(Tensor::of<int32_t>(Shape{2, 3}, {2, 0, 1, 1, 2, 2}));
  const auto weight = fixed(Tensor::of<double>(Shape{3}, {0.5, 2, 1.5}));
  for (const char* reduction : {"none", "sum", "mean"}) {
    cases.add(Struct{.reduction = reduction}, {x, target});
    cases.add(Struct{.reduction = reduction}, {x, target, weight});
    cases.add(Struct{.reduction = reduction, .ignore_index = 2}, {x, target, weight});
    cases.add(Struct{.reduction = reduction}, {deep, grid});
  }
}

void batch_norms(GradientCases& cases) {
  const Spread positive{.low = 0.4, .high = 1.5};
  const CaseInput each = real({3}), deviations = real({3}, positive);
  for (const bool last : {false, true}) {
    const CaseInput image = last ? batched({2, 2, 4, 3}) : batched({2, 3, 2, 4});
    const CaseInput moment = fixed(deviations.value);
    cases.add(BatchNormalization{.channels_last = last}, {image, each, each, each, deviations});
    cases.add(BatchNormalization{.training_mode = true, .channels_last = last},
              {image, each, each, moment, moment}, 3, {0});
    cases.add(GroupNormalization{.num_groups = 3, .channels_last = last}, {image, each, each});
  }
  const CaseInput flat = batched({4, 3});
  cases.add(BatchNormalization{.training_mode = true},
            {flat, each, each, fixed(each.value), fixed(deviations.value)});
  cases.add(GroupNormalization{.num_groups = 2}, {batched({2, 4, 3}), real({4}), real({4})});
  cases.add(InstanceNormalization{}, {batched({2, 3, 4}), each, each});
  cases.add(InstanceNormalization{.epsilon = 0.1f}, {batched({2, 3, 2, 2}), each, each});
}

void row_norms(GradientCases& cases) {
  const CaseInput x = batched({2, 3, 4});
  const DType f64 = DType::f64;
  cases.add(LayerNormalization{.stash_type = f64}, {x, real({4}), real({4})});
  cases.add(LayerNormalization{.axis = 1, .stash_type = f64}, {x, real({3, 4}), real({3, 4})});
  cases.add(LayerNormalization{.axis = 1, .stash_type = f64}, {x, real({4}), real({})});
  cases.add(LayerNormalization{.epsilon = 0.1f}, {x, real({4})});
  cases.add(RMSNormalization{.stash_type = f64}, {x, real({4})});
  cases.add(RMSNormalization{.axis = -2, .stash_type = f64}, {x, real({3, 1})});
  const CaseInput inverse = fixed(real({2, 3, 1}, {.low = 0.5, .high = 1.5}).value);
  cases.add(LayerNormalizationBackward{}, {x, x, real({4}), fixed(real({2, 3, 1}).value), inverse},
            3);
  cases.add(RMSNormalizationBackward{}, {x, x, real({4}), inverse}, 2);
  for (const int64_t p : {1, 2})
    for (const int64_t axis : {0, -1}) cases.add(LpNormalization{axis, p}, {batched({2, 3, 2})});
  cases.add(MeanVarianceNormalization{}, {batched({2, 3, 2, 4})});
  cases.add(MeanVarianceNormalization{.axes = {1}, .normalize_variance = false}, {x});
}

void dropouts(GradientCases& cases) {
  const auto ratio = fixed(Tensor::scalar(0.4)), off = fixed(Tensor::scalar(false)),
             on = fixed(Tensor::scalar(true)), step = fixed(Tensor::scalar<int64_t>(7));
  cases.add(Dropout{}, {batched({4, 3}), ratio, off});
  cases.add(Dropout{.seed = 5}, {batched({4, 3}), ratio, on});
  cases.add(Dropout{.seed = 5, .stream = 3}, {batched({4, 3}), ratio, on, step});
  cases.add(SteppedDropout{.ratio = 0.4f, .seed = 5, .stream = 3}, {batched({4, 3}), step});
}

}  // namespace

void norm_cases(GradientCases& cases) {
  batch_norms(cases);
  row_norms(cases);
  dropouts(cases);
  for (const int64_t axis : {-1, 0, 1}) {
    cases.add(Softmax{.axis = axis}, {batched({2, 3, 2})});
    cases.add(LogSoftmax{.axis = axis}, {batched({2, 3, 2})});
  }
  cases.add(AllReduce{}, {batched({4, 3})});
  losses<NegativeLogLikelihoodLoss>(cases, batched({4, 3}), batched({2, 3, 3}));
  losses<SoftmaxCrossEntropyLoss>(cases, batched({4, 3}), batched({2, 3, 3}));
  cases.add(SoftmaxCrossEntropyLoss{},
            {batched({4, 3}), fixed(Tensor::of<int64_t>(Shape{4}, {2, 0, 1, 2}))}, 2);
  const auto target = fixed(Tensor::of<int64_t>(Shape{4}, {2, 0, 1, 2}));
  const auto x = fixed(real({4, 3}).value);
  cases.add(NegativeLogLikelihoodLossBackward{}, {real({}), x, target});
  cases.add(NegativeLogLikelihoodLossBackward{.reduction = "none"}, {real({4}), x, target});
}

}  // namespace dais
