#pragma once

#include "ir/op.h"

namespace dais {

// Recurrent layers. Inputs: X [L, N, in], W [D, G H, in], R [D, G H, H], B? [D, 2 G H],
// sequence_lens? [N], initial_h? [D, N, H]; LSTM also initial_c? [D, N, H] and peepholes P? [D, 3
// H]. D is 2 when bidirectional; G gates: RNN 1, GRU 3 (z, r, h), LSTM 4 (i, o, f, c). Outputs: Y?
// [L, D, N, H], Y_h? [D, N, H], for LSTM Y_c? [D, N, H]. With layout 1 the batch comes first: X [N,
// L, in], Y [N, L, D, H], states [N, D, H]. Beyond an example's length Y is zero and the state
// stays. Activations default to Tanh (RNN), Sigmoid, Tanh (GRU) and Sigmoid, Tanh, Tanh (LSTM).
// For training (not in ONNX) GRU and LSTM have output 3: what the activations gave, [D, L, N, kept]
// (GRU: z, r, h and, with linear_before_reset, the product that r scales; LSTM: i, o, f, c), and
// LSTM output 4: the cells, [D, L, N, H]. Places beyond an example's length are zero.

struct RNN {
  std::vector<float> activation_alpha = {}, activation_beta = {};
  std::vector<std::string> activations = {};
  float clip = 0;  ///< limit of activation inputs; 0: none
  std::string direction = "forward";
  int64_t hidden_size = 0;  ///< 0: as R says
  int64_t layout = 0;
  static constexpr auto fields = std::tuple{field("activation_alpha", &RNN::activation_alpha),
                                            field("activation_beta", &RNN::activation_beta),
                                            field("activations", &RNN::activations),
                                            field("clip", &RNN::clip),
                                            field("direction", &RNN::direction),
                                            field("hidden_size", &RNN::hidden_size),
                                            field("layout", &RNN::layout)};
  static const Op op;
};

struct GRU {
  std::vector<float> activation_alpha = {}, activation_beta = {};
  std::vector<std::string> activations = {};
  float clip = 0;
  std::string direction = "forward";
  int64_t hidden_size = 0;
  int64_t layout = 0;
  bool linear_before_reset = false;  ///< reset the product with R instead of the state
  static constexpr auto fields =
      std::tuple{field("activation_alpha", &GRU::activation_alpha),
                 field("activation_beta", &GRU::activation_beta),
                 field("activations", &GRU::activations),
                 field("clip", &GRU::clip),
                 field("direction", &GRU::direction),
                 field("hidden_size", &GRU::hidden_size),
                 field("layout", &GRU::layout),
                 field("linear_before_reset", &GRU::linear_before_reset)};
  static const Op op;
};

struct LSTM {
  std::vector<float> activation_alpha = {}, activation_beta = {};
  std::vector<std::string> activations = {};
  float clip = 0;
  std::string direction = "forward";
  int64_t hidden_size = 0;
  int64_t layout = 0;
  bool input_forget = false;  ///< the forget gate is one minus the input gate
  static constexpr auto fields = std::tuple{field("activation_alpha", &LSTM::activation_alpha),
                                            field("activation_beta", &LSTM::activation_beta),
                                            field("activations", &LSTM::activations),
                                            field("clip", &LSTM::clip),
                                            field("direction", &LSTM::direction),
                                            field("hidden_size", &LSTM::hidden_size),
                                            field("layout", &LSTM::layout),
                                            field("input_forget", &LSTM::input_forget)};
  static const Op op;
};

/// Gradients of recurrent layers back through time. Inputs: dY?, dY_h?, dY_c?, R, sequence_lens?,
/// initial_h?, initial_c?, P?, Y, kept gates (not RNN), cells (LSTM). Outputs: the gradients of the
/// gates' sums [D, L, N, G H], from which those of X, W, R and B are products; that of initial_h;
/// the states before each step [D, L, N, H]; then for LSTM the gradients of initial_c and P, and
/// for GRU [D, L, N, H]: with linear_before_reset the gradient of the product that r scales, else
/// the scaled state that met R.
enum class RecurrentCell : uint8_t { rnn, gru, lstm };
template <RecurrentCell cell>
struct RecurrentBackward {
  std::vector<float> activation_alpha = {}, activation_beta = {};
  std::vector<std::string> activations = {};
  float clip = 0;
  std::string direction = "forward";
  int64_t layout = 0;
  bool flag = false;  ///< linear_before_reset, or input_forget
  static constexpr auto fields =
      std::tuple{field("activation_alpha", &RecurrentBackward::activation_alpha),
                 field("activation_beta", &RecurrentBackward::activation_beta),
                 field("activations", &RecurrentBackward::activations),
                 field("clip", &RecurrentBackward::clip),
                 field("direction", &RecurrentBackward::direction),
                 field("layout", &RecurrentBackward::layout),
                 field("flag", &RecurrentBackward::flag)};
  static const Op op;
};
using RNNBackward = RecurrentBackward<RecurrentCell::rnn>;
using GRUBackward = RecurrentBackward<RecurrentCell::gru>;
using LSTMBackward = RecurrentBackward<RecurrentCell::lstm>;
template <>
const Op RNNBackward::op;
template <>
const Op GRUBackward::op;
template <>
const Op LSTMBackward::op;

}  // namespace dais
