#pragma once

#include "ir/op.h"

namespace dais {

// Recurrent layers. Inputs: X [L, N, in], W [D, G H, in], R [D, G H, H], B? [D, 2 G H],
// sequence_lens? [N], initial_h? [D, N, H]; LSTM also initial_c? [D, N, H] and peepholes P? [D, 3
// H]. D is 2 when bidirectional; G gates: RNN 1, GRU 3 (z, r, h), LSTM 4 (i, o, f, c). Outputs: Y?
// [L, D, N, H], Y_h? [D, N, H], for LSTM Y_c? [D, N, H]. With layout 1 the batch comes first: X [N,
// L, in], Y [N, L, D, H], states [N, D, H]. Beyond an example's length Y is zero and the state
// stays. Activations default to Tanh (RNN), Sigmoid, Tanh (GRU) and Sigmoid, Tanh, Tanh (LSTM).

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

}  // namespace dais
