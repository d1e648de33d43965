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
};

}  // namespace dais::cpu
