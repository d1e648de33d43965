#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dais {

/// A gate's activation with its parameters and the limit of its input.
struct GateActivation {
  double (*function)(double x, double alpha, double beta) = nullptr;
  /// The derivative, from what the function gave.
  double (*derivative)(double y, double alpha, double beta) = nullptr;
  double alpha = 0, beta = 0;
  double clip = 0;

  double operator()(double x) const {
    if (clip > 0) x = x < -clip ? -clip : x > clip ? clip : x;
    return function(x, alpha, beta);
  }
  double slope(double y) const {
    const bool cut =
        clip > 0 && (y == function(clip, alpha, beta) || y == function(-clip, alpha, beta));
    return cut ? 0 : derivative(y, alpha, beta);
  }
};

/// The activations of all directions, in order. Parameters are consumed by those that take them.
/// Throws `invalid_argument` for a name that is not known or a list of the wrong length.
std::vector<GateActivation> gate_activations(const std::vector<std::string>& names,
                                             const std::vector<float>& alphas,
                                             const std::vector<float>& betas, double clip,
                                             size_t count);

/// The parameters of one direction, as double. Matrices are turned: [in or H, G H].
struct Direction {
  std::vector<double> w, r;
  std::vector<double> w_bias, r_bias;  ///< [G H]
  std::vector<double> peepholes;       ///< [3 H] in the order i, o, f; or empty
  const GateActivation* activations = nullptr;
  int64_t hidden = 0;
};

enum class CellKind : uint8_t { rnn, gru, lstm };

/// One step of one example: x is W times the input, hr is R times h (both [G H], without biases);
/// h and c are replaced. `flag` is linear_before_reset or input_forget. What the gates gave goes to
/// `gates` (see rnn.h) unless that is null.
void step_cell(CellKind kind, const Direction& direction, bool flag, const double* x,
               const double* hr, double* h, double* c, double* gates);

}  // namespace dais
