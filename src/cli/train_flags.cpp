#include "cli/train_flags.h"

#include <algorithm>

#include "base/ranks.h"
#include "base/threads.h"
#include "cli/run_options.h"

namespace dais::cli {
namespace {

void add_loss_flags(CLI::App& command, TrainFlags& f) {
  constexpr const char* kGroup = "Loss";
  command.add_option("--loss", f.loss, "Loss; by the kind of data when left out")->group(kGroup);
  train::LossOptions& o = f.loss_options;
  command.add_option("--label-smoothing", o.label_smoothing, "Share spread over all classes")
      ->check(CLI::Range(0.0, 0.999))
      ->group(kGroup);
  command.add_option("--class-weights", o.class_weights, "Weight of each class")->group(kGroup);
  command.add_option("--ignore-index", o.ignore_index, "Class number that does not count")
      ->group(kGroup);
  command.add_option("--delta", o.delta, "Where huber turns from square to line")
      ->check(CLI::PositiveNumber)
      ->group(kGroup);
  command.add_option("--focal-gamma", o.focal_gamma, "Power of the focal loss")->group(kGroup);
  command.add_option("--focal-alpha", o.focal_alpha, "Weight of true boxes in it")->group(kGroup);
  command.add_option("--box-weight", o.box_weight, "Weight of the box loss")->group(kGroup);
}

void add_optimiser_flags(CLI::App& command, TrainFlags& f) {
  constexpr const char* kGroup = "Optimiser";
  const auto option = [&](const char* name, auto& target, const char* help) {
    return command.add_option(name, target, help)->group(kGroup);
  };
  train::OptimiserOptions& o = f.optimiser_options;
  option("--optimiser", f.optimiser, "sgd, adagrad, rmsprop, adadelta, adam, adamw or lamb")
      ->capture_default_str();
  option("--momentum", o.momentum, "Momentum of sgd and rmsprop");
  command.add_flag("--nesterov", o.nesterov, "Nesterov's momentum")->group(kGroup);
  option("--dampening", o.dampening, "Share of the gradient kept out of the momentum");
  option("--beta1", o.beta1, "Decay of the first moment of adam and its kin");
  option("--beta2", o.beta2, "Decay of the second");
  option("--rho", o.rho, "Decay of rmsprop (0.99) and adadelta (0.9)");
  option("--epsilon", o.epsilon, "Added to denominators");
  command.add_flag("--centered", o.centered, "rmsprop by the variance")->group(kGroup);
  option("--rate-decay", o.rate_decay, "Decay of adagrad's rate");
  option("--weight-decay", o.weight_decay,
         "0.01 for adamw and lamb, else 0; not for biases and norms");
  command.add_flag("--decay-all", o.decay_all, "Weight decay also for biases and norms")
      ->group(kGroup);
  option("--clip-norm", o.clip_norm, "Largest norm of all gradients together");
  option("--clip-value", o.clip_value, "Largest size of a gradient's element");
  option("--ema", o.ema, "Decay of a running mean of the weights, which is then what is exported");
}

void add_rate_flags(CLI::App& command, TrainFlags& f) {
  constexpr const char* kGroup = "Learning rate";
  const auto option = [&](const char* name, auto& target, const char* help) {
    return command.add_option(name, target, help)->group(kGroup);
  };
  train::Schedule& s = f.curve;
  option("--lr", f.rate, "Learning rate; usual for the optimiser when left out");
  option("--lr-policy", f.policy,
         "fixed, step, multistep, exponential, inverse, polynomial, sigmoid, cosine or one-cycle")
      ->capture_default_str();
  option("--lr-gamma", f.gamma, "Factor of step, multistep, exponential, inverse and sigmoid");
  option("--lr-power", f.power, "Power of inverse and polynomial");
  option("--lr-step", s.step, "Length of a step, as a part of the training");
  option("--lr-milestones", s.milestones, "Places of multistep, as parts of the training");
  option("--lr-middle", s.middle, "Middle of the sigmoid, as a part of the training");
  option("--lr-floor", s.floor, "Lowest rate of cosine and polynomial");
  option("--lr-rise", s.rise, "Part of one-cycle that rises");
  option("--warm-up", s.warm_up, "Updates of linear rise before the policy");
  option("--warm-up-epochs", f.warm_up_epochs, "The same in epochs");
  option("--plot-lr", f.plot_rate, "Only draw the rate: FILE.svg, FILE.png, or - for text alone");
}

void add_loop_flags(CLI::App& command, TrainFlags& f) {
  constexpr const char* kGroup = "Course";
  const auto option = [&](const char* name, auto& target, const char* help) {
    return command.add_option(name, target, help)->group(kGroup);
  };
  option("--epochs", f.epochs, "Times through the data")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  option("--updates", f.updates, "Stop after so many updates");
  option("--precision", f.precision, "Element type of products: fp32, bf16 or fp16")
      ->capture_default_str();
  command
      .add_flag("--check-gradients", f.check_gradients,
                "Only compare the gradients with differences of the loss, in f64")
      ->group(kGroup);
  option("--accumulate", f.accumulate, "Batches whose mean gradient makes an update")
      ->check(CLI::PositiveNumber);
  option("--ranks", f.ranks, "Processes that share each batch, over MPI")
      ->check(CLI::Range(1, 1024));
  command.add_flag("--sync-norms", f.sync_norms, "Batch norms by the batches of all ranks")
      ->group(kGroup);
  option("--freeze", f.freeze, "Regular expression of tensors that stay as they are");
  option("--fix-input", f.fix_inputs,
         "NAME=NUMBER or NAME=positions: what an input besides the data's always holds");
  option("--replace-head", f.replace_head, "Give the last linear layer so many classes");
  option("--memory-limit", f.memory_limit,
         "MiB for weights, moments and a step; what would take more is computed again");
  option("--keep", f.loop.keep, "Newest checkpoints kept")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  option("--checkpoint-every", f.loop.checkpoint_every, "Updates between checkpoints");
  option("--checkpoint-seconds", f.loop.checkpoint_seconds, "Seconds between them; 0: none")
      ->capture_default_str();
  option("--validate-every", f.loop.validate_every, "Epochs between validations")
      ->check(CLI::PositiveNumber);
  option("--patience", f.loop.patience, "Stop after so many validations without a better score");
  option("--log-every", f.loop.log_every, "Updates between rows of the log")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

}  // namespace

train::Schedule TrainFlags::schedule() const {
  train::Schedule out = curve;
  out.policy = train::policy_from_name(policy);
  out.rate = rate.value_or(train::usual_rate(train::optimiser_from_name(optimiser)));
  train::set_policy_defaults(out);
  if (gamma) out.gamma = *gamma;
  if (power) out.power = *power;
  return out;
}

train::TrainOptions TrainFlags::training(data::Task task) const {
  train::TrainOptions options = loop;
  options.folder = out;
  options.epochs = epochs;
  options.max_updates = updates;
  options.schedule = schedule();
  options.warm_up_epochs = warm_up_epochs;
  options.memory_limit = static_cast<size_t>(std::max<int64_t>(memory_limit, 0)) << 20;
  options.resume = !resume.empty();
  options.step.loss = loss_options;
  options.step.loss.kind = loss.empty() ? train::usual_loss(task) : train::loss_from_name(loss);
  options.step.optimiser = optimiser_options;
  options.step.optimiser.kind = train::optimiser_from_name(optimiser);
  options.step.optimiser.check();
  options.step.freeze = freeze;
  // Each rank drops other elements.
  options.step.seed = seed + static_cast<uint64_t>(rank_group().rank());
  options.step.ranks = rank_group().size();
  options.step.sync_norms = sync_norms;
  options.step.threads = threads;
  options.step.backend = place.open();
  if (threads == 0 && options.step.ranks > 1)
    options.step.threads = std::max(1, usable_cores() / options.step.ranks);
  options.step.precision = train::precision_from_name(precision);
  options.step.accumulate = accumulate;
  options.step.open_lengths = task == data::Task::transcription;
  return options;
}

void add_train_flags(CLI::App& command, TrainFlags& f) {
  command.add_option("model", f.model, "ONNX file of the network");
  command.add_option("--out", f.out, "Folder for checkpoints, logs and the trained network");
  command.add_option("--resume", f.resume, "Go on with the training in this folder");
  command.add_option("--config", f.config, "YAML file with flags; the command line goes first");
  command.add_option("--seed", f.seed, "Seed of order, augmentation, dropout and new weights")
      ->capture_default_str();
  command.add_option("--threads", f.threads, "Threads to use; 0: all usable cores")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  add_device_flags(command, f.place);
  command.add_flag("--json", f.json, "One JSON object a line");
  add_data_flags(command, f.data);
  add_loader_flags(command, f.data);
  add_loss_flags(command, f);
  add_optimiser_flags(command, f);
  add_rate_flags(command, f);
  add_loop_flags(command, f);
}

}  // namespace dais::cli
