#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace dais::train {

enum class OptimiserKind : uint8_t { sgd, adagrad, rmsprop, adadelta, adam, adamw, lamb };
OptimiserKind optimiser_from_name(std::string_view name);
std::string_view optimiser_name(OptimiserKind kind);
const std::vector<std::string>& optimiser_names();

/// PyTorch's meanings and, where nothing is given, its values.
struct OptimiserOptions {
  OptimiserKind kind = OptimiserKind::sgd;
  double momentum = 0;  ///< sgd, rmsprop
  double dampening = 0;
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999;     ///< adam, adamw, lamb
  std::optional<double> rho;             ///< rmsprop's alpha (0.99), adadelta's rho (0.9)
  std::optional<double> epsilon;         ///< 1e-10 adagrad, 1e-6 adadelta and lamb, else 1e-8
  double rate_decay = 0;                 ///< adagrad
  bool centered = false;                 ///< rmsprop
  std::optional<double> weight_decay;    ///< 0.01 for adamw and lamb, else 0
  bool decay_all = false;                ///< also biases and norms (parameters of one axis or none)
  double clip_norm = 0, clip_value = 0;  ///< 0: no clipping; the value is clipped first
  double ema = 0;                        ///< decay of a running mean of the weights; 0: none

  /// Throws `invalid_argument` naming the setting outside its range.
  void check() const;
};

/// A learning rate that is usual for the kind.
double usual_rate(OptimiserKind kind);

/// A trained tensor: its value before the update (a graph input) and its gradient.
struct Trained {
  std::string name;
  Value* before = nullptr;
  Value* gradient = nullptr;
};

/// A tensor that lives from step to step: its graph input, its new value, and what it starts from.
struct StateEntry {
  std::string name;
  Value* before = nullptr;
  Value* after = nullptr;
  Tensor initial;
  std::string starts_as = {};  ///< name of another state whose first value it takes
};

/// What surrounds the updates.
struct UpdateInputs {
  Value* rate = nullptr;   ///< f32 scalar
  Value* step = nullptr;   ///< i64 scalar: updates done before
  Value* apply = nullptr;  ///< bool scalar: false leaves every state as it is
};

struct Updates {
  std::vector<StateEntry> states;  ///< parameters first (without `initial`), then moments
  Value* norm_squared = nullptr;   ///< f32 scalar: of all gradients, before clipping by norm
  Value* applied = nullptr;        ///< bool scalar: apply, and the norm is finite
};

/// Appends the update of every parameter; moments become inputs of the graph named
/// "PARAMETER.momentum" and the like. Weight decay goes to parameters of two axes or more unless
/// decay_all. A gradient that holds NaN or infinity leaves every state as it is.
Updates add_updates(Graph& graph, const OptimiserOptions& options,
                    const std::vector<Trained>& trained, const UpdateInputs& inputs);

}  // namespace dais::train
