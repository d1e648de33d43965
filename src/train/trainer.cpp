#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "backends/cpu/isa.h"
#include "base/ranks.h"
#include "base/threads.h"
#include "onnx/exporter.h"
#include "runtime/backend.h"
#include "train/train_record.h"

namespace dais::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// One training; the parts of train().
class Trainer {
 public:
  Trainer(onnx::Model& model, data::Loader& loader, data::Loader* validation,
          const TrainOptions& options, Reporter& reporter, const std::atomic<bool>& stop)
      : model_(model),
        loader_(loader),
        validation_(validation),
        options_(options),
        reporter_(reporter),
        stop_(stop),
        checkpoints_(options.folder / "checkpoints",
                     leads() ? options.keep : CheckpointFolder::kReadOnly) {}

  Summary run() {
    prepare();
    if (options_.resume) resume();
    const int64_t resumed_at = options_.resume ? update_ : -1;
    if (leads()) log_ = std::make_unique<TrainLog>(options_.folder, resumed_at);
    start_ = reported_ = saved_ = Clock::now();
    first_update_ = update_;
    Ending ending = Ending::finished;
    while (update_ < updates_) {
      one_update();
      if (const auto end = after_update()) {
        ending = *end;
        break;
      }
    }
    return finish(ending);
  }

 private:
  void prepare() {
    warnings_ = check_data(model_, loader_.dataset(), options_.step.loss.kind);
    const data::Batch sample = loader_.next();
    loader_.seek_epoch(0);
    step_options_ = options_.step;
    if (step_options_.loss.kind == LossKind::detection)
      learn_anchors(*model_.graph, step_options_.loss);
    make_step(sample);
    const int64_t steps = loader_.steps_per_epoch();
    updates_ = std::max<int64_t>(1, options_.epochs * steps / options_.step.accumulate);
    if (options_.max_updates > 0) updates_ = std::min(updates_, options_.max_updates);
    schedule_ = options_.schedule;
    schedule_.length = updates_;
    schedule_.warm_up += static_cast<int64_t>(std::llround(
        options_.warm_up_epochs * static_cast<double>(steps) / options_.step.accumulate));
    schedule_.check();
    reporter_.started(forecast(sample));
  }

  /// The step that computes least twice among those that the memory limit allows.
  void make_step(const data::Batch& sample) {
    size_t least = 0;
    for (const int stretches : {0, 2, 3, 4, 6, 8, 12, 16, 24, 32}) {
      step_.reset();
      step_options_.stretches = stretches;
      step_ = std::make_unique<TrainingStep>(model_, step_options_, sample);
      if (options_.memory_limit == 0) return;
      step_->run(sample, 0, 0, false);
      const size_t needed = step_->state_bytes() + step_->arena_bytes();
      if (needed <= options_.memory_limit) return;
      least = least == 0 ? needed : std::min(least, needed);
    }
    throw Error(Code::exhausted,
                "a step takes " + std::to_string((least >> 20) + 1) +
                    " MiB even with its values computed again",
                "--memory-limit", "Use a smaller batch, or a larger limit");
  }

  Forecast forecast(const data::Batch& sample) {
    Forecast out;
    out.stretches = step_options_.stretches;
    out.samples = loader_.dataset().size();
    out.validation_samples = validation_ ? validation_->dataset().size() : 0;
    out.steps_per_epoch = loader_.steps_per_epoch();
    out.updates = updates_;
    out.parameters = step_->parameters();
    out.state_bytes = step_->state_bytes();
    out.threads = threads();
    out.device = device();
    constexpr int kTimed = 2;
    for (int i = -1; i < kTimed; ++i) {
      const auto start = Clock::now();
      step_->run(sample, 0, 0, false);
      const double seconds = seconds_since(start);
      if (i >= 0) out.step_seconds = i == 0 ? seconds : std::min(out.step_seconds, seconds);
    }
    out.arena_bytes = step_->arena_bytes();
    out.epoch_seconds = out.step_seconds * static_cast<double>(out.steps_per_epoch);
    out.warnings = warnings_;
    const auto& slow = step_->plan().warnings();
    out.warnings.insert(out.warnings.end(), slow.begin(), slow.end());
    return out;
  }

  std::string device() const {
    return options_.step.backend ? options_.step.backend->name() : "CPU";
  }
  int threads() const { return options_.step.threads > 0 ? options_.step.threads : usable_cores(); }

  /// Of several ranks the first one alone writes, validates and reports.
  static bool leads() { return rank_group().rank() == 0; }

  MachineFacts machine() const {
    return {threads(), rank_group().size(), std::string(isa_name(cpu::isa())), kBuild, device()};
  }

  void resume() {
    const auto found = checkpoints_.newest(
        [&](const Error& error) { reporter_.warned(std::string("passed over: ") + error.what()); });
    // Killed before its first checkpoint, a training begins anew.
    if (!found && checkpoints_.updates().empty()) return reporter_.resumed(0, true, {});
    if (!found)
      throw Error(Code::not_found, "there is no whole checkpoint to resume from",
                  checkpoints_.path().string(), "Start the training anew");
    step_->load(found->tensors);
    const TrainRecord record = TrainRecord::parse(found->facts);
    loader_.seek(record.loader);
    record_ = record;
    update_ = found->update;
    // Killed between a checkpoint and the note that it is the best.
    if (record.best && record.best_update == update_) checkpoints_.set_best(update_, *record.best);
    const std::string other = record.machine.difference(machine());
    reporter_.resumed(update_, other.empty(), other);
  }

  void one_update() {
    const double rate = schedule_.at(update_);
    for (int i = 0; i < options_.step.accumulate; ++i) {
      const data::Batch batch = take_batch();
      const Outcome outcome = step_->run(batch, rate, update_);
      if (!outcome.finite) diverged(batch, rate, outcome);
      if (outcome.overflowed) ++overflows_;
      record_.interval.add(outcome.loss, static_cast<double>(batch.size()));
      samples_ += batch.size() * rank_group().size();
      epoch_ended_ |= batch.last_of_epoch;
      norm_ = outcome.gradient_norm;
      loader_.top_up();
    }
    rate_ = rate;
    ++update_;
  }

  /// The next batch. With a device the one behind it begins its way there.
  data::Batch take_batch() {
    data::Batch batch = ahead_ ? std::move(*ahead_) : loader_.next();
    ahead_.reset();
    if (!options_.step.backend || update_ + 1 >= updates_) return batch;
    position_ = loader_.position();
    try {
      ahead_ = loader_.next();
      step_->prefetch(*ahead_);
    } catch (const Error&) {
      // The loader says so again when that batch is needed.
    }
    return batch;
  }

  [[noreturn]] void diverged(const data::Batch& batch, double rate, const Outcome& outcome) {
    const std::string found =
        rank_group().size() > 1 ? "" : step_->find_not_finite(batch, rate, update_);
    const bool in_loss = !std::isfinite(outcome.loss);
    throw Diverged(Code::invalid_argument,
                   std::string(in_loss ? "the loss" : "the gradient") +
                       " is not finite at update " + std::to_string(update_ + 1) +
                       (found.empty() ? "" : "; first operator: " + found),
                   options_.folder.string(),
                   "Use a lower learning rate, warm-up or gradient clipping; checkpoints from "
                   "before are kept");
  }

  double epoch() const {
    return static_cast<double>(update_ * options_.step.accumulate) /
           static_cast<double>(loader_.steps_per_epoch());
  }

  /// Log, validation and checkpoint where they are due; an ending when the training ends early.
  std::optional<Ending> after_update() {
    if (leads()) report();
    if (update_ % options_.log_every == 0 || update_ == updates_) write_log();
    const bool validate = epoch_ended_ && epochs_ended() % options_.validate_every == 0;
    if (leads() && validation_ && (validate || update_ == updates_)) this->validate();
    const bool due =
        epoch_ended_ ||
        (options_.checkpoint_every > 0 && update_ % options_.checkpoint_every == 0) ||
        (options_.checkpoint_seconds > 0 && seconds_since(saved_) > options_.checkpoint_seconds);
    epoch_ended_ = false;
    const bool early = agreed(options_.patience > 0 && record_.stale >= options_.patience);
    const bool stop = agreed(stop_.load());
    if (leads() && (due || early || stop || update_ == updates_))
      save(early || stop || update_ == updates_);
    if (early) return Ending::early;
    if (stop && update_ < updates_) return Ending::stopped;
    return std::nullopt;
  }

  /// Whether any rank says so.
  static bool agreed(bool here) {
    if (rank_group().size() == 1) return here;
    float votes[1] = {here ? 1.0f : 0.0f};
    rank_group().start_sum(votes);
    rank_group().finish(votes);
    return votes[0] > 0;
  }

  int64_t epochs_ended() const {
    return update_ * options_.step.accumulate / loader_.steps_per_epoch();
  }

  void report() {
    const double seconds = seconds_since(start_);
    const data::LoaderTimes times = loader_.times();
    progress_.update = update_;
    progress_.updates = updates_;
    progress_.epoch = epoch();
    progress_.loss = record_.interval.value();
    progress_.rate = rate_;
    progress_.gradient_norm = norm_;
    progress_.samples_per_second = static_cast<double>(samples_) / std::max(seconds, 1e-9);
    progress_.wait_share = std::min(1.0, times.waited_s / std::max(seconds, 1e-9));
    progress_.seconds_left = seconds / static_cast<double>(update_ - first_update_) *
                             static_cast<double>(updates_ - update_);
    progress_.memory_bytes = resident_bytes();
    reporter_.progress(progress_);
  }

  void write_log() {
    if (!leads()) return void(record_.interval = Mean());
    log_->write(update_, {{"epoch", epoch()},
                          {"loss", record_.interval.value()},
                          {"learning_rate", rate_},
                          {"gradient_norm", norm_},
                          {"samples_per_second", progress_.samples_per_second},
                          {"wait_share", progress_.wait_share}});
    if (overflows_ > 0)
      reporter_.warned(std::to_string(std::exchange(overflows_, 0)) +
                       " updates left out: the loss scale was too large for their gradients");
    record_.interval = Mean();
  }

  void validate() {
    Evaluator evaluator(model_, options_.step.loss, step_->weights(), threads(),
                        options_.step.backend);
    const Evaluation found = evaluator.run(*validation_);
    const bool best = !record_.best || found.better_than(*record_.best);
    if (best) {
      record_.best = found.score;
      record_.best_update = update_;
    }
    record_.stale = best ? 0 : record_.stale + 1;
    best_now_ = best;
    last_ = found;
    progress_.metric = found.metric;
    progress_.score = found.score;
    log_->write_validation(update_, epoch(), found);
    reporter_.validated(found, update_, epoch(), best);
  }

  /// A checkpoint that cannot be written does not end the training, but at its end it does.
  void save(bool must) {
    const auto start = Clock::now();
    record_.machine = machine();
    record_.loader = ahead_ ? position_ : loader_.position();
    record_.epoch = epoch();
    try {
      checkpoints_.write({update_, step_->state(), record_.text()});
      if (std::exchange(best_now_, false)) checkpoints_.set_best(update_, *record_.best);
      reporter_.checkpointed(update_, seconds_since(start));
    } catch (const Error& error) {
      const auto kept = checkpoints_.updates();
      const std::string last =
          kept.empty() ? "there is none from before"
                       : "the last good one is of update " + std::to_string(kept.back());
      if (must)
        throw Error(error.code(),
                    "the checkpoint was not written: " + error.problem() + "; " + last,
                    error.where(), "Make room and resume");
      reporter_.warned("the checkpoint was not written: " + error.problem() + "; " + last);
    }
    saved_ = Clock::now();
  }

  Summary finish(Ending ending) {
    Summary out;
    out.ending = ending;
    out.updates = update_;
    out.seconds = seconds_since(start_);
    out.samples_per_second = static_cast<double>(samples_) / std::max(out.seconds, 1e-9);
    out.loss = progress_.loss;
    if (!leads()) return out;
    out.last = last_;
    out.best = checkpoints_.best();
    write_curves(options_.folder, progress_.metric);
    if (ending == Ending::stopped) return out;
    out.model = options_.folder / "trained.onnx";
    const bool use_best = validation_ && out.best;
    export_weights(
        model_,
        use_best ? weights_of(checkpoints_.read(out.best->first).tensors) : step_->weights(),
        out.model);
    return out;
  }

  onnx::Model& model_;
  data::Loader& loader_;
  data::Loader* validation_;
  const TrainOptions& options_;
  Reporter& reporter_;
  const std::atomic<bool>& stop_;
  CheckpointFolder checkpoints_;
  std::unique_ptr<TrainingStep> step_;
  std::unique_ptr<TrainLog> log_;
  std::optional<data::Batch> ahead_;  ///< taken from the loader, not run yet
  std::string position_;              ///< of the loader before that one was taken
  StepOptions step_options_;
  std::vector<std::string> warnings_;
  Schedule schedule_;
  TrainRecord record_;
  Progress progress_;
  std::optional<Evaluation> last_;
  int64_t update_ = 0, updates_ = 0, first_update_ = 0, samples_ = 0;
  int64_t overflows_ = 0;
  double norm_ = 0, rate_ = 0;
  bool epoch_ended_ = false, best_now_ = false;
  Clock::time_point start_, reported_, saved_;
};

}  // namespace

Summary train(onnx::Model& model, data::Loader& loader, data::Loader* validation,
              const TrainOptions& options, Reporter& reporter, const std::atomic<bool>& stop) {
  return Trainer(model, loader, validation, options, reporter, stop).run();
}

}  // namespace dais::train
