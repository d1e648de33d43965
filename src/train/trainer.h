#pragma once

#include <atomic>
#include <filesystem>

#include "train/checkpoint.h"
#include "train/evaluate.h"
#include "train/schedule.h"
#include "train/step.h"

namespace dais::train {

/// One training from start to end. Folder layout: model.onnx (the network as it started),
/// checkpoints/, metrics.csv, events.out.tfevents.*; at the end curves.png and trained.onnx.
struct TrainOptions {
  std::filesystem::path folder;
  int64_t epochs = 10;
  int64_t max_updates = 0;  ///< 0: all of the epochs
  StepOptions step;
  Schedule schedule;                ///< its length is set by the trainer
  double warm_up_epochs = 0;        ///< added to the schedule's warm_up
  int keep = 3;                     ///< newest checkpoints kept
  int64_t checkpoint_every = 0;     ///< updates between checkpoints within an epoch; 0: none
  double checkpoint_seconds = 600;  ///< and seconds; 0: none
  int64_t validate_every = 1;       ///< epochs
  /// What weights, moments and the memory of a step may take together; values are computed again
  /// where they would take more. 0: no limit.
  size_t memory_limit = 0;
  int patience = 0;        ///< validations without a better score before it stops; 0: never
  int64_t log_every = 50;  ///< updates between rows of the log
  bool resume = false;
  std::string flags;  ///< for the record: the options as the user gave them
};

/// Where a training stands.
struct Progress {
  int64_t update = 0, updates = 0;
  double epoch = 0;  ///< with the part that is done
  double loss = 0;   ///< mean since the last report
  double rate = 0, gradient_norm = 0;
  double samples_per_second = 0;
  double wait_share = 0;  ///< of the time, spent waiting for data
  double seconds_left = 0;
  size_t memory_bytes = 0;  ///< resident
  std::string metric;       ///< of the last validation
  double score = 0;
};

/// What a training will need.
struct Forecast {
  int64_t samples = 0, steps_per_epoch = 0, updates = 0, validation_samples = 0;
  size_t parameters = 0;
  size_t state_bytes = 0, arena_bytes = 0;
  int stretches = 0;  ///< StepOptions::stretches that the memory limit asked for
  double step_seconds = 0, epoch_seconds = 0;
  int threads = 0;
  std::string device;                 ///< name of the one that steps run on
  std::vector<std::string> warnings;  ///< of the data, and of what the device leaves to the CPU
};

/// Hears what goes on; every function is called on the training thread.
class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void started(const Forecast&) {}
  virtual void resumed(int64_t /*update*/, bool /*exact*/, const std::string& /*why_not*/) {}
  virtual void progress(const Progress&) {}
  virtual void validated(const Evaluation&, int64_t /*update*/, double /*epoch*/, bool /*best*/) {}
  virtual void checkpointed(int64_t /*update*/, double /*seconds*/) {}
  virtual void warned(const std::string&) {}
};

enum class Ending : uint8_t {
  finished,  ///< all epochs
  early,     ///< no better score for `patience` validations
  stopped,   ///< asked to stop; a checkpoint was written
};

struct Summary {
  Ending ending = Ending::finished;
  int64_t updates = 0;
  double seconds = 0, samples_per_second = 0;
  double loss = 0;
  std::optional<Evaluation> last;
  std::optional<std::pair<int64_t, double>> best;  ///< update and score
  std::filesystem::path model;                     ///< trained.onnx
};

/// The problem with the numbers of a step; the training cannot go on.
class Diverged : public Error {
 public:
  using Error::Error;
};

/// Trains `model` on the loader's data. `stop` is looked at after every update. Throws what data,
/// step and checkpoints throw; Diverged when a loss or gradient is not finite.
Summary train(onnx::Model& model, data::Loader& loader, data::Loader* validation,
              const TrainOptions& options, Reporter& reporter, const std::atomic<bool>& stop);

/// Sets what the exported file says about its inputs: "dais.task", "dais.classes" and how images
/// are normalised, as `predict` needs it.
void describe_data(onnx::Model& model, const data::Loader& loader);

/// Findings about the data before the first step: classes without samples, labels that the network
/// has no score for (an error), unreadable files.
std::vector<std::string> check_data(const onnx::Model& model, const data::Dataset& dataset,
                                    LossKind loss);

/// Resident memory of this process.
size_t resident_bytes();

}  // namespace dais::train
