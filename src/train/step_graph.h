#pragma once

#include "train/step.h"

namespace dais::train {

/// Which part of an update a graph does: all of it, or with accumulation, one that only adds its
/// gradients up and one that adds, updates and clears the sums.
enum class StepPart : uint8_t { whole, gather, finish };

/// A training step as a graph, before any pass. Inputs in order: the network's, the targets',
/// `step`, `learning_rate`, `apply`, `loss_scale`, `updates_done`, then states and, for `gather`,
/// parameters that stay. Outputs: loss, squared gradient norm, whether states changed, the
/// network's outputs, states.
struct StepGraph {
  std::unique_ptr<Graph> graph;
  size_t data_inputs = 0, target_inputs = 0;
  size_t results = 0;              ///< outputs of the network
  std::vector<StateEntry> states;  ///< parameters, moments, statistics, sums
  size_t parameters = 0;           ///< the first so many states
  std::vector<StatePair> pairs;    ///< of the states that change, in order of the states
  static constexpr size_t kFirstResult = 3;
  static constexpr size_t kControls = 5;  ///< inputs from `step` to `updates_done`
};

/// Throws what TrainingStep throws.
StepGraph build_step(const onnx::Model& model, const StepOptions& options,
                     const data::Batch& sample, StepPart part);

/// Loss and gradients alone. Inputs in order: the network's, the targets', `step`, parameters,
/// then `fixed`. Outputs: loss, then the gradient of each parameter.
struct GradientGraph {
  std::unique_ptr<Graph> graph;
  std::vector<StateEntry> parameters, fixed;
};
GradientGraph build_gradients(const onnx::Model& model, const StepOptions& options,
                              const data::Batch& sample);

/// The tensors of a batch that a loss reads, in the order of the graph's target inputs.
std::vector<NamedTensor> target_tensors(const LossOptions& loss, const data::Batch& batch);

}  // namespace dais::train
