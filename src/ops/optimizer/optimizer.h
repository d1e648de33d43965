#pragma once

#include "ir/op.h"

namespace dais {

// Optimiser steps for any number n of tensors. Inputs: R (learning rate), T (number of updates
// done, i64), then n tensors X, n gradients G and n of each moment; outputs: n new X, then the
// moments. In all, the gradient used is G + norm_coefficient * X.

/// H += G * G; X -= R / (1 + T * decay_factor) * G / (sqrt(H) + epsilon).
struct Adagrad {
  float decay_factor = 0;
  float epsilon = 0;
  float norm_coefficient = 0;
  static constexpr auto fields =
      std::tuple{field("decay_factor", &Adagrad::decay_factor), field("epsilon", &Adagrad::epsilon),
                 field("norm_coefficient", &Adagrad::norm_coefficient)};
  static const Op op;
};

/// V = alpha V + (1 - alpha) G; H = beta H + (1 - beta) G * G;
/// X -= R * sqrt(1 - beta^T) / (1 - alpha^T) * V / (sqrt(H) + epsilon) (R alone when T is 0), then
/// X *= 1 - norm_coefficient_post.
struct Adam {
  float alpha = 0.9f;
  float beta = 0.999f;
  float epsilon = 0;
  float norm_coefficient = 0;
  float norm_coefficient_post = 0;
  static constexpr auto fields = std::tuple{
      field("alpha", &Adam::alpha), field("beta", &Adam::beta), field("epsilon", &Adam::epsilon),
      field("norm_coefficient", &Adam::norm_coefficient),
      field("norm_coefficient_post", &Adam::norm_coefficient_post)};
  static const Op op;
};

/// V = alpha V + (beta, or 1 when T is 0) G; X -= R * V, or for mode "nesterov"
/// X -= R * (G + alpha V).
struct Momentum {
  float alpha = 0.9f;
  float beta = 1;
  std::string mode = "standard";
  float norm_coefficient = 0;
  static constexpr auto fields = std::tuple{
      field("alpha", &Momentum::alpha), field("beta", &Momentum::beta),
      field("mode", &Momentum::mode), field("norm_coefficient", &Momentum::norm_coefficient)};
  static const Op op;
};

}  // namespace dais
