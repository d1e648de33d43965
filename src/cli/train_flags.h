#pragma once

#include "cli/data_flags.h"
#include "cli/run_options.h"
#include "train/trainer.h"

namespace dais::cli {

/// The flags of `dais train`.
struct TrainFlags {
  std::string model, out, resume, config, plot_rate, freeze;
  std::vector<std::string> fix_inputs;
  DataFlags data;
  int64_t epochs = 10, updates = 0, replace_head = 0, memory_limit = 0;
  uint64_t seed = 0;
  int threads = 0, accumulate = 1, ranks = 1;
  bool sync_norms = false;
  DeviceFlags place;
  bool json = false;
  std::string loss, optimiser = "sgd", policy = "fixed", precision = "fp32";
  bool check_gradients = false;
  train::LossOptions loss_options;
  train::OptimiserOptions optimiser_options;
  std::optional<double> rate, gamma, power;
  train::Schedule curve;
  double warm_up_epochs = 0;
  train::TrainOptions loop;

  train::Schedule schedule() const;
  /// Everything train() needs. Throws `invalid_argument` naming the flag that is wrong.
  train::TrainOptions training(data::Task task) const;
};

void add_train_flags(CLI::App& command, TrainFlags& flags);

}  // namespace dais::cli
