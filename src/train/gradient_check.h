#pragma once

#include "train/step.h"

namespace dais::train {

/// How the gradients of a training step compare with differences of its loss.
struct GradientCheck {
  struct Row {
    std::string parameter;
    double by_gradient = 0, by_difference = 0;
    double error = 0;  ///< relative to the larger of both
  };
  std::vector<Row> rows;  ///< one for each parameter, and one along all together
  double worst = 0;
};

/// In f64 and without any kernel: along a random direction for each parameter, and for all at once,
/// the derivative by the gradient against the central difference of the loss. Small batches keep it
/// quick. Where a step crosses a kink (ReLU, maximum) the difference is off by a little.
GradientCheck check_gradients(const onnx::Model& model, const StepOptions& options,
                              const data::Batch& batch);

}  // namespace dais::train
