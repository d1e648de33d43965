#pragma once

#include <cstdint>

namespace dais::cpu {

/// One example's step of a recurrent layer with the usual activations (sigmoid gates, tanh
/// candidates). `x` holds W x with every bias that is added outside, `hr` holds R h, gate after
/// gate of `hidden` values each; h (and c) are replaced.
struct CellStep {
  int64_t hidden = 0;
  const float* x = nullptr;
  const float* hr = nullptr;
  float* h = nullptr;
  float* c = nullptr;
  const float* peepholes = nullptr;   ///< LSTM: [3, hidden] in the order i, o, f; or null
  const float* reset_bias = nullptr;  ///< GRU: what the reset gate multiplies besides; or null
  float* reset = nullptr;             ///< GRU: the reset state, when the gate multiplies that
  bool input_forget = false;          ///< LSTM: the forget gate is one minus the input gate
  float* gates = nullptr;             ///< what the gates gave, for the gradient (rnn.h); or null
};

/// The same step on the way back. The gradient of the new state is `carried` plus `through` plus
/// `dy`; `carried` becomes what passes the gates, `slopes` the gradients of the gates' sums as they
/// meet R.
struct CellBack {
  int64_t hidden = 0;
  const float* gates = nullptr;    ///< as kept forward; RNN: the new state
  const float* dy = nullptr;       ///< or null
  const float* through = nullptr;  ///< what came through R from the step behind
  const float* before = nullptr;   ///< GRU: the state before; LSTM: the cell before
  const float* cell = nullptr;     ///< LSTM: the new cell
  float* carried = nullptr;
  float* dc = nullptr;  ///< LSTM: the gradient of the new cell, then of the one before
  float* slopes = nullptr;
  float* fresh_slopes = nullptr;  ///< GRU: the gradient of the last gate's sum as W meets it
  bool input_forget = false;
};

}  // namespace dais::cpu
