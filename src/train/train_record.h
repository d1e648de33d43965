#pragma once

#include "train/trainer.h"

namespace dais::train {

/// Version of the program, as checkpoints record it.
inline constexpr const char* kBuild = "dais 0.1.0";

/// What decides whether the same steps give the same bits.
struct MachineFacts {
  int threads = 0, ranks = 1;
  std::string isa, build;
  std::string device = "CPU";  ///< name of the one that steps run on
  /// Why another machine may round in another way; empty when it does not.
  std::string difference(const MachineFacts& other) const;
};

/// What a checkpoint says beside its tensors.
struct TrainRecord {
  MachineFacts machine;
  std::string loader;  ///< its position
  double epoch = 0;
  std::optional<double> best;  ///< score
  int64_t best_update = 0;     ///< the update that it belongs to
  int64_t stale = 0;           ///< validations since
  Mean interval;               ///< loss since the last row of the log

  std::string text() const;  ///< a JSON object
  /// Throws `invalid_model` when something is missing.
  static TrainRecord parse(const std::string& text);
};

/// metrics.csv and the TensorBoard file of a training.
class TrainLog {
 public:
  TrainLog(const std::filesystem::path& folder, int64_t resumed_at);
  void write(int64_t update, const Scalars& values);
  void write_validation(int64_t update, double epoch, const Evaluation& evaluation);

 private:
  CsvLog csv_;
  EventWriter events_;
};

/// Draws metrics.csv of a training's folder as curves.png: loss, score and learning rate.
void write_curves(const std::filesystem::path& folder, const std::string& metric);

/// A checkpoint's tensors as what belongs into the network's file (see TrainingStep::weights).
std::map<std::string, Tensor> weights_of(const std::vector<NamedTensor>& tensors);

/// Writes the network with these weights as ONNX.
void export_weights(const onnx::Model& model, const std::map<std::string, Tensor>& weights,
                    const std::filesystem::path& path);

}  // namespace dais::train
