#include "autodiff/gradient_case.h"
#include "ops/elementwise/elementwise.h"
#include "ops/recall/recall.h"

namespace dais {
namespace {

const Shape kShape{2, 3};

template <typename Struct>
void one(GradientCases& cases, Struct attrs, const Spread& spread = {}) {
  cases.add(attrs, {batched(kShape, spread)});
}

void smooth(GradientCases& cases) {
  const Spread above_one{.low = 1.2, .high = 3}, inside{.low = -0.9, .high = 0.9},
      positive{.low = 0.3, .high = 3}, narrow{.low = -1.2, .high = 1.2};
  one(cases, Abs{});
  one(cases, Acos{}, inside);
  one(cases, Acosh{}, above_one);
  one(cases, Asin{}, inside);
  one(cases, Asinh{});
  one(cases, Atan{});
  one(cases, Atanh{}, inside);
  one(cases, Cos{});
  one(cases, Cosh{});
  one(cases, Erf{});
  one(cases, Exp{});
  one(cases, Log{}, positive);
  one(cases, Neg{});
  one(cases, Reciprocal{}, positive);
  one(cases, Sigmoid{});
  one(cases, Sin{});
  one(cases, Sinh{});
  one(cases, Sqrt{}, positive);
  one(cases, Tan{}, narrow);
  one(cases, Tanh{});
  one(cases, Softplus{});
  one(cases, Softsign{});
  one(cases, Mish{});
  one(cases, Swish{});
  one(cases, Swish{.alpha = -0.7f});
  one(cases, Gelu{});
  one(cases, Gelu{.approximate = "tanh"});
  one(cases, Identity{});
  one(cases, Recall{});
}

void bent(GradientCases& cases) {
  one(cases, Ceil{}, {.avoid = {-1, 0, 1}});
  one(cases, Floor{}, {.avoid = {-1, 0, 1}});
  one(cases, Round{}, {.avoid = {-1.5, -0.5, 0.5, 1.5}});
  one(cases, Sign{});
  one(cases, Relu{});
  one(cases, LeakyRelu{});
  one(cases, LeakyRelu{.alpha = -0.5f});
  one(cases, Elu{});
  one(cases, Elu{.alpha = -1.5f});
  one(cases, Celu{});
  one(cases, Celu{.alpha = 0.6f});
  one(cases, Selu{});
  one(cases, Selu{.alpha = 0.5f, .gamma = -2});
  one(cases, HardSigmoid{}, {.low = -4, .high = 4, .avoid = {-2.5, 2.5}});
  one(cases, HardSwish{}, {.low = -5, .high = 5, .avoid = {-3, 3}});
  one(cases, ThresholdedRelu{.alpha = 0.4f}, {.avoid = {0.4}});
  one(cases, Shrink{.lambd = 0.6f, .bias = 0.2f}, {.avoid = {-0.6, 0.6}});
}

template <typename Struct>
void two(GradientCases& cases, Struct attrs, const Spread& a = {}, const Spread& b = {}) {
  cases.add(attrs, {batched({4, 3}, a), batched({4, 3}, b)});
  cases.add(attrs, {batched({4, 1, 3}, a), real({2, 1}, b)});
  cases.add(attrs, {real({}, a), batched({4, 3}, b)});
}

void pairs(GradientCases& cases) {
  const Spread positive{.low = 0.3, .high = 2}, apart{.low = 2.3, .high = 5};
  two(cases, Add{});
  two(cases, Sub{});
  two(cases, Mul{});
  two(cases, Div{}, {}, positive);
  two(cases, Pow{}, positive);
  for (const double exponent : {0.5, 1.0, 2.0, 3.0, -1.5})
    cases.add(Pow{}, {batched({4, 3}, positive), fixed(Tensor::scalar(exponent))});
  cases.add(Pow{}, {batched({4, 3}), fixed(Tensor::scalar<int64_t>(3))});
  cases.add(Pow{}, {batched({2, 3}), fixed(Tensor::of<int32_t>(Shape{3}, {1, 2, 4}))});
  two(cases, Mod{.fmod = true}, {.low = -1.9, .high = 2}, apart);
  cases.add(Mod{.fmod = true}, {real({4}, {.low = 5.1, .high = 5.9}), real({1}, apart)});
  cases.add(Mod{.fmod = true}, {real({4}, {.low = -5.9, .high = -5.1}), real({1}, apart)});
  two(cases, PRelu{});
  cases.add(PRelu{}, {batched({2, 3, 4}), real({3, 1})});
}

void many(GradientCases& cases) {
  const Spread higher{.low = -1.7, .high = 2.4}, lower{.low = -2.3, .high = 1.6};
  cases.add(Min{}, {batched({4, 3}), batched({4, 3}, higher)});
  cases.add(Max{}, {batched({4, 3}), real({3}, higher), real({4, 1}, lower)});
  cases.add(Max{}, {batched({4, 3})});
  cases.add(Sum{}, {batched({4, 3}), real({3}, higher), real({1}, lower)});
  cases.add(Mean{}, {batched({4, 3}), real({3}, higher), real({4, 1}, lower)});
  cases.add(Clip{}, {batched({4, 3})});
  cases.add(Clip{}, {batched({4, 3}), real({}, {.low = -1.01, .high = -0.99})});
  cases.add(Clip{}, {batched({4, 3}), real({}, {.low = -1.01, .high = -0.99}),
                     real({}, {.low = 0.99, .high = 1.01})});
  cases.add(Clip{}, {batched({4, 3}), none(), real({}, {.low = 0.99, .high = 1.01})});
  const auto mask = fixed(Tensor::of<bool>(Shape{4, 1}, {true, false, false, true}));
  cases.add(Where{}, {mask, real({4, 3}), real({4, 3}, higher)});
  cases.add(Where{}, {mask, real({1, 3}), real({2, 1, 1}, higher)});
}

}  // namespace

void elementwise_cases(GradientCases& cases) {
  smooth(cases);
  bent(cases);
  pairs(cases);
  many(cases);
}

}  // namespace dais
