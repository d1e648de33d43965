#include "autodiff/gradient_case.h"
#include "ops/ctc_loss/ctc_loss.h"
#include "ops/rnn/rnn.h"

namespace dais {
namespace {

constexpr int64_t kLength = 3, kBatch = 2, kInput = 2, kHidden = 3;

/// X, W, R and further inputs of a layer with that many gates.
std::vector<CaseInput> layer(int64_t gates, int64_t directions, bool batch_first) {
  const int64_t rows = gates * kHidden;
  CaseInput x = batch_first ? batched({kBatch, kLength, kInput}) : real({kLength, kBatch, kInput});
  const Spread small{.low = -0.9, .high = 1};
  return {x, real({directions, rows, kInput}, small), real({directions, rows, kHidden}, small)};
}

CaseInput state(int64_t directions, bool batch_first) {
  return batch_first ? real({kBatch, directions, kHidden}) : real({directions, kBatch, kHidden});
}

template <typename Struct>
void layers(GradientCases& cases, Struct attrs, int64_t gates, size_t outputs) {
  attrs.hidden_size = kHidden;
  cases.add(attrs, layer(gates, 1, false), outputs);
  for (const char* direction : {"forward", "reverse", "bidirectional"})
    for (const bool batch_first : {false, true}) {
      attrs.direction = direction;
      attrs.layout = batch_first ? 1 : 0;
      const int64_t directions = attrs.direction == "bidirectional" ? 2 : 1;
      auto in = layer(gates, directions, batch_first);
      in.push_back(real({directions, 2 * gates * kHidden}, {.low = -0.5, .high = 0.5}));
      in.push_back(fixed(Tensor::of<int32_t>(Shape{kBatch}, {2, 3})));
      in.push_back(state(directions, batch_first));
      if (gates == 4) {
        in.push_back(state(directions, batch_first));
        in.push_back(real({directions, 3 * kHidden}, {.low = -0.6, .high = 0.5}));
      }
      cases.add(attrs, in, outputs);
    }
}

void recurrent(GradientCases& cases) {
  layers(cases, RNN{}, 1, 2);
  layers(cases, GRU{}, 3, 2);
  layers(cases, GRU{.linear_before_reset = true}, 3, 2);
  layers(cases, LSTM{}, 4, 3);
  layers(cases, LSTM{.input_forget = true}, 4, 3);
  for (const char* name : {"Relu", "Affine", "LeakyRelu", "ScaledTanh", "HardSigmoid", "Elu",
                           "Softsign", "Softplus", "Sigmoid"})
    cases.add(RNN{.activation_alpha = {0.3f}, .activation_beta = {0.4f}, .activations = {name}},
              layer(1, 1, false), 2);
  cases.add(LSTM{.activations = {"HardSigmoid", "Softsign", "Tanh"}, .clip = 0.7f},
            layer(4, 1, false), 3, {0});
}

void temporal(GradientCases& cases) {
  const auto logs = real({5, 2, 4}, {.low = -3, .high = -0.2});
  const auto targets = fixed(Tensor::of<int64_t>(Shape{2, 3}, {1, 2, 2, 3, 1, 0}));
  const auto steps = fixed_ints({5, 4}), lengths = fixed_ints({3, 2});
  cases.add(CTCLoss{}, {logs, targets, steps, lengths}, 2, {0});
  cases.add(CTCLoss{}, {logs, targets, steps, fixed_ints({1, 0})}, 2, {0});
  cases.add(CTCLoss{.zero_infinity = true}, {logs, targets, fixed_ints({2, 4}), lengths}, 2, {0});
  const auto others = fixed(Tensor::of<int32_t>(Shape{2, 2}, {0, 1, 2, 2}));
  cases.add(CTCLoss{.blank = 3}, {logs, others, steps, fixed_ints({2, 2})}, 2, {0});
}

}  // namespace

void sequence_cases(GradientCases& cases) {
  recurrent(cases);
  temporal(cases);
}

}  // namespace dais
