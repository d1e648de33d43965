#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/ranks.h"
#include "cli/command.h"
#include "cli/data_flags.h"
#include "cli/train_flags.h"
#include "cli/train_report.h"
#include "cli/yaml_flags.h"
#include "onnx/exporter.h"
#include "train/fixed_inputs.h"
#include "train/gradient_check.h"
#include "train/mpi_ranks.h"
#include "train/plot.h"

namespace dais::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kStopped = 3, kDiverged = 4;

std::atomic<bool> stop_asked{false};

void ask_to_stop(int) { stop_asked.store(true); }

/// SIGTERM, SIGINT and (from the ranks' launcher) SIGUSR1 ask the training to write a checkpoint
/// and end; a second one ends at once.
void listen_for_signals() {
  struct sigaction action {};
  action.sa_handler = ask_to_stop;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) ::sigaction(signal, &action, nullptr);
}

void plot_rate(const TrainFlags& flags) {
  train::Schedule schedule = flags.schedule();
  schedule.length = flags.updates > 0 ? flags.updates : 1000;
  schedule.check();
  train::Curve curve{"learning rate", {}, {}};
  const int64_t step = std::max<int64_t>(1, schedule.length / 1000);
  for (int64_t at = 0; at < schedule.length; at += step) {
    curve.x.push_back(static_cast<double>(at));
    curve.y.push_back(schedule.at(at));
  }
  const train::Chart chart{"learning rate, " + flags.policy, "update", {curve}};
  if (flags.plot_rate != "-") train::write_charts(flags.plot_rate, {chart});
  std::fputs(chart.text().c_str(), stdout);
}

void print_summary(const train::Summary& s, bool as_json) {
  static constexpr const char* endings[] = {"finished", "stopped early", "stopped"};
  const char* ending = endings[static_cast<size_t>(s.ending)];
  if (as_json) {
    json row{{"event", "ended"},
             {"ending", ending},
             {"updates", s.updates},
             {"seconds", s.seconds},
             {"samples_per_second", s.samples_per_second},
             {"loss", s.loss},
             {"model", s.model.string()}};
    if (s.last) row[s.last->metric] = s.last->score;
    if (s.best) row["best"] = {{"update", s.best->first}, {"score", s.best->second}};
    std::printf("%s\n", row.dump().c_str());
    return;
  }
  std::printf("%s after %lld updates in %.1f s (%.0f samples/s)\n", ending,
              static_cast<long long>(s.updates), s.seconds, s.samples_per_second);
  if (s.best)
    std::printf("best score %.5f at update %lld\n", s.best->second,
                static_cast<long long>(s.best->first));
  if (!s.model.empty()) std::printf("%s\n", s.model.c_str());
}

/// Network and flags of the training that is resumed are those in its folder.
void use_folder(CLI::App& command, TrainFlags& flags) {
  if (flags.resume.empty()) return;
  const fs::path folder = flags.resume;
  if (!fs::exists(folder / "flags.yaml"))
    throw Error(Code::not_found, "there is no training to resume", folder.string(),
                "Give the folder that --out named");
  apply_yaml(command, folder / "flags.yaml");
  flags.out = folder.string();
  flags.model = (folder / "model.onnx").string();
}

void start_folder(const CLI::App& command, const TrainFlags& flags, const onnx::Model& model) {
  const fs::path folder = flags.out;
  if (fs::exists(folder / "flags.yaml"))
    throw Error(Code::invalid_argument, "the folder already holds a training", folder.string(),
                "Use --resume " + folder.string() + ", or another --out");
  fs::create_directories(folder);
  onnx::save_model(model, folder / "model.onnx");
  std::string text =
      yaml_of(command, {"model", "out", "resume", "config", "json", "data", "val", "ranks"});
  // A resumed run may start in another folder.
  text += "data: " + json(fs::absolute(flags.data.data).string()).dump() + "\n";
  if (!flags.data.validation.empty())
    text += "val: " + json(fs::absolute(flags.data.validation).string()).dump() + "\n";
  write_file(folder / "flags.yaml", text);
}

/// What start_folder wrote would be in the way of the next try, where this one was refused before
/// its first step.
void undo_folder(const fs::path& folder) {
  if (fs::exists(folder / "metrics.csv")) return;
  std::error_code ignored;
  // Folders go only when they are empty.
  for (const char* name : {"model.onnx", "flags.yaml", "checkpoints", ""})
    fs::remove(*name ? folder / name : folder, ignored);
}

/// 1 when a gradient differs from what the loss itself shows.
int check_gradients(const onnx::Model& model, const TrainFlags& flags, const DataParts& parts) {
  constexpr int64_t kSamples = 4;
  constexpr double kLimit = 1e-5;
  data::LoaderOptions options = training_loader(flags.data, *parts.training, flags.seed);
  fit_features(options, *model.graph);
  options.batch = std::min(options.batch, kSamples);
  data::Loader loader(parts.training, options);
  train::StepOptions step = flags.training(parts.training->description().task).step;
  if (step.loss.kind == train::LossKind::detection) train::learn_anchors(*model.graph, step.loss);
  const train::GradientCheck found = train::check_gradients(model, step, loader.next());
  for (const auto& row : found.rows) {
    if (flags.json)
      std::printf("%s\n", json{{"parameter", row.parameter},
                               {"by_gradient", row.by_gradient},
                               {"by_difference", row.by_difference},
                               {"error", row.error}}
                              .dump()
                              .c_str());
    else
      std::printf("%-32s %14.8g %14.8g  %.1e%s\n", row.parameter.c_str(), row.by_gradient,
                  row.by_difference, row.error, row.error < kLimit ? "" : "  differs");
  }
  return found.worst < kLimit ? 0 : 1;
}

/// This process' command line, for ranks that are to do the same.
std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> out;
  for (std::string word; std::getline(file, word, '\0');) out.push_back(word);
  out.at(0) = fs::read_symlink("/proc/self/exe").string();
  return out;
}

/// The loader's part of a batch that all ranks share.
void divide_batch(data::LoaderOptions& options) {
  const RankGroup& group = rank_group();
  options.rank = group.rank();
  options.ranks = group.size();
  if (options.batch % group.size() != 0)
    throw Error(Code::invalid_argument,
                std::to_string(group.size()) + " ranks cannot share a batch of " +
                    std::to_string(options.batch),
                "--batch", "Use a multiple of the ranks");
  options.batch /= group.size();
}

void run(CLI::App& command, TrainFlags& flags, int& status) {
  if (!flags.config.empty()) apply_yaml(command, flags.config);
  use_folder(command, flags);
  if (train::started_as_rank()) {
    set_rank_group(train::open_mpi_ranks());
  } else if (flags.ranks > 1) {
    status = train::launch_ranks(flags.ranks, own_arguments());
    return;
  }
  const bool leads = rank_group().rank() == 0;
  if (!flags.plot_rate.empty()) return plot_rate(flags);
  if (flags.model.empty() || (flags.out.empty() && !flags.check_gradients))
    throw Error(Code::invalid_argument, "train needs a model and a folder to work in", "",
                "Write: dais train model.onnx --data PATH --out FOLDER");
  listen_for_signals();
  onnx::Model model = onnx::import_model(flags.model);
  const bool resumes = !flags.resume.empty();
  if (!flags.fix_inputs.empty() && !resumes) train::fix_inputs(model, flags.fix_inputs);
  if (flags.replace_head > 0 && !resumes)
    train::replace_head(model, flags.replace_head, flags.seed);
  const DataParts parts = open_parts(flags.data, flags.seed);
  if (flags.check_gradients) {
    status = check_gradients(model, flags, parts);
    return;
  }
  auto options = training_loader(flags.data, *parts.training, flags.seed);
  fit_features(options, *model.graph);
  const auto whole = validation_loader(options);
  divide_batch(options);
  data::Loader loader(parts.training, options);
  std::unique_ptr<data::Loader> validation;
  if (parts.validation) validation = std::make_unique<data::Loader>(parts.validation, whole);
  train::describe_data(model, loader);
  const train::TrainOptions training = flags.training(parts.training->description().task);
  if (!resumes && leads) start_folder(command, flags, model);
  const auto reporter =
      leads ? make_train_reporter(flags.json) : std::make_unique<train::Reporter>();
  try {
    const train::Summary summary =
        train::train(model, loader, validation.get(), training, *reporter, stop_asked);
    if (leads) print_summary(summary, flags.json);
    if (leads && summary.ending == train::Ending::stopped) status = kStopped;
  } catch (const train::Diverged& error) {
    if (leads) std::fprintf(stderr, "dais: %s\n", error.what());
    if (leads) status = kDiverged;
  } catch (const Error&) {
    if (!resumes && leads) undo_folder(flags.out);
    throw;
  }
  set_rank_group(nullptr);  // leaves the job in order
}

}  // namespace

void add_train(Program& program) {
  auto* command = program.app.add_subcommand("train", "Train a network on data");
  const auto flags = std::make_shared<TrainFlags>();
  add_train_flags(*command, *flags);
  command->footer(
      "Example: dais train lenet.onnx --data /usr/share/datasets/fashion-mnist --epochs 3 "
      "--lr 0.02 --momentum 0.9 --batch 64 --out run");
  command->callback([command, flags, &program] { run(*command, *flags, program.status); });
}

}  // namespace dais::cli
