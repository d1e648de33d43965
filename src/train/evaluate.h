#pragma once

#include <map>
#include <memory>
#include <optional>

#include "data/loader.h"
#include "onnx/importer.h"
#include "train/events.h"
#include "train/losses.h"
#include "train/metrics.h"

namespace dais {
class Backend;
}

namespace dais::train {

/// How well a network does on a set of samples.
struct Evaluation {
  int64_t samples = 0;
  double loss = 0;
  std::string metric = "loss";  ///< name of what `score` is
  double score = 0;
  bool higher_is_better = false;
  Scalars values;  ///< every number by name, loss and score among them
  std::optional<Confusion> confusion;
  double seconds = 0;

  bool better_than(double other) const { return higher_is_better ? score > other : score < other; }
};

/// A network with its loss, compiled for inference.
class Evaluator {
 public:
  /// `weights` replace the constants of those names. The loss is used without label smoothing.
  /// `backend`: a device that runs what it has kernels for; null: the CPU alone.
  Evaluator(const onnx::Model& model, const LossOptions& loss,
            const std::map<std::string, Tensor>& weights, int threads,
            std::shared_ptr<Backend> backend = nullptr);
  ~Evaluator();

  /// One epoch of the loader, from its beginning.
  Evaluation run(data::Loader& loader);

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

/// The loss that fits a task when none is named.
LossKind usual_loss(data::Task task);

}  // namespace dais::train
