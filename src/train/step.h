#pragma once

#include <memory>

#include "api/compile.h"
#include "data/loader.h"
#include "runtime/session.h"
#include "train/losses.h"
#include "train/precision.h"
#include "train/safetensors.h"
#include "train/training_form.h"

namespace dais::train {

struct StepOptions {
  LossOptions loss;
  OptimiserOptions optimiser;
  std::string freeze;
  uint64_t seed = 0;
  int threads = 0;  ///< 0: all usable cores
  Precision precision = Precision::fp32;
  int accumulate = 1;         ///< batches whose mean gradient makes one update
  bool open_lengths = false;  ///< only the batch size is fixed, other open sizes vary
  Optimize optimize = Optimize::full;
  /// A device that the steps run on as far as it has kernels; null: the CPU. Weights and moments
  /// stay in its memory between steps.
  std::shared_ptr<Backend> backend = nullptr;
  int ranks = 1;            ///< processes whose mean gradient makes an update (base/ranks.h)
  bool sync_norms = false;  ///< batch norms take their statistics over the batches of all ranks
  /// Stretches of the network (recompute.h) of which only what passes from one to the next is kept
  /// for the way back; below 2 everything is.
  int stretches = 0;
};

/// What one batch gave.
struct Outcome {
  double loss = 0;
  double gradient_norm = 0;  ///< of the update's gradient, before clipping; 0 between updates
  bool updated = false;      ///< false between updates, and when the gradient was not finite
  bool overflowed = false;   ///< fp16: the update was left out and the loss scale lowered
  bool finite = true;        ///< loss and gradient norm are numbers
};

/// One training step compiled to a plan: forward, loss, backward and updates. Owns weights,
/// moments and statistics. One thread at a time.
class TrainingStep {
 public:
  /// Sizes and element types of all batches to come are those of `sample` (with open_lengths, those
  /// of its batch axis). Throws `invalid_argument` when network, data and loss do not fit together,
  /// and what append_gradients throws.
  TrainingStep(const onnx::Model& model, const StepOptions& options, const data::Batch& sample);
  ~TrainingStep();

  /// Runs a batch; `update` is the number of updates done before. With `apply` false nothing
  /// changes (but the time it takes). `profile` gets what each step of the plan took.
  Outcome run(const data::Batch& batch, double rate, int64_t update, bool apply = true,
              std::vector<StepTime>* profile = nullptr);
  /// Begins to copy the batch that the next run but the present one is given to the device, beside
  /// that one. Without a device nothing happens.
  void prefetch(const data::Batch& next);
  /// An output of the network in the last run, for metrics; valid until the next.
  const Tensor& output(size_t index = 0) const;

  /// Weights, moments and statistics by name, in an order that depends on the graph alone. Shares
  /// the elements with the step: they change with the next run (with a device: when asked for).
  std::vector<NamedTensor> state() const;
  /// Takes over elements of the same names and shapes; throws `invalid_argument` naming what is
  /// missing, left over or of another shape.
  void load(const std::vector<NamedTensor>& tensors);
  /// What to put into the network's file: weights (their running mean where `ema` is kept) and
  /// statistics, by their names there. Shares elements with the step.
  std::map<std::string, Tensor> weights() const;

  /// Looks for the first operator whose result is not finite although all that it reads is; runs
  /// the batch again without changing anything. A sentence with the operator and statistics of its
  /// operands, or "" when all values are finite.
  std::string find_not_finite(const data::Batch& batch, double rate, int64_t update);

  const Plan& plan() const;
  size_t parameters() const;  ///< elements that are trained
  size_t state_bytes() const;
  size_t arena_bytes() const;  ///< after the first run

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

}  // namespace dais::train
