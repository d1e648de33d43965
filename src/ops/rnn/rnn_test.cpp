#include "ops/rnn/rnn.h"

#include "ops/run_op.h"

namespace dais {
namespace {

TEST(RNN, BidirectionalLengthsAndLayout) {
  // With Affine (the identity), W = 1 and R = 1 a cell adds up what it has seen.
  const RNN attrs{.activations = {"Affine", "affine"}, .direction = "bidirectional"};
  const Tensor x = Tensor::of<float>({3, 2, 1}, {1, 10, 2, 20, 3, 30});
  const Tensor one = Tensor::of<float>({2, 1, 1}, {1, 1});
  const Tensor lengths = Tensor::of<int32_t>({2}, {3, 2});
  const auto y = run_op(attrs, {x, one, one, {}, lengths}, 2);
  EXPECT_TRUE(
      y[0].identical(Tensor::of<float>({3, 2, 2, 1}, {1, 10, 6, 30, 3, 30, 5, 20, 6, 0, 3, 0})));
  EXPECT_TRUE(y[1].identical(Tensor::of<float>({2, 2, 1}, {6, 30, 6, 30})));
  RNN batch_first = attrs;
  batch_first.layout = 1;
  const Tensor turned = Tensor::of<float>({2, 3, 1}, {1, 2, 3, 10, 20, 30});
  const auto z = run_op(batch_first, {turned, one, one, {}, lengths}, 2);
  EXPECT_EQ(z[0].shape(), (Shape{2, 3, 2, 1}));
  EXPECT_EQ(z[0].to_double(5), 3);
  EXPECT_TRUE(z[1].identical(Tensor::of<float>({2, 2, 1}, {6, 6, 30, 30})));
}

TEST(LSTM, ClipAndCoupledForgetGate) {
  // Weights of zero: gates at 0.5 by sigmoid, the cell keeps half of its state.
  const Tensor x = Tensor::of<float>({1, 1, 1}, {1}),
               w = Tensor::of<float>({1, 4, 1}, {0, 0, 0, 0});
  const Tensor state = Tensor::of<float>({1, 1, 1}, {0}), cell = Tensor::of<float>({1, 1, 1}, {2});
  const auto y = run_op(LSTM{}, {x, w, w, {}, {}, state, cell}, 3);
  EXPECT_NEAR(y[2].to_double(), 1, 1e-6);
  EXPECT_NEAR(y[1].to_double(), 0.5 * std::tanh(1.0), 1e-6);
  const Tensor big = Tensor::of<float>({1, 4, 1}, {100, 0, 0, 0});
  const auto coupled =
      run_op(LSTM{.clip = 1, .input_forget = true}, {x, big, w, {}, {}, state, cell}, 3);
  EXPECT_NEAR(coupled[2].to_double(), 2 * (1 - 1 / (1 + std::exp(-1.0))), 1e-6);
}

TEST(GRU, WrongSizesAreErrors) {
  const Tensor x(DType::f32, {2, 1, 3}), r(DType::f32, {1, 6, 2});
  EXPECT_THROW(run_op(GRU{}, {x, Tensor(DType::f32, {1, 6, 2}), r}, 2), Error);
  EXPECT_THROW(run_op(GRU{.direction = "backward"}, {x, Tensor(DType::f32, {1, 6, 3}), r}, 2),
               Error);
  EXPECT_THROW(run_op(GRU{.activations = {"Sigmoid"}}, {x, Tensor(DType::f32, {1, 6, 3}), r}, 2),
               Error);
  const Tensor lengths = Tensor::of<int32_t>({1}, {3});
  EXPECT_THROW(run_op(GRU{}, {x, Tensor(DType::f32, {1, 6, 3}), r, {}, lengths}, 2), Error);
}

}  // namespace
}  // namespace dais
