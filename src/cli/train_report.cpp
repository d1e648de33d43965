#include "cli/train_report.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace dais::cli {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

std::string clock_text(double seconds) {
  const auto whole = static_cast<long long>(std::llround(std::max(0.0, seconds)));
  char out[32];
  if (whole >= 3600)
    std::snprintf(out, sizeof out, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  else
    std::snprintf(out, sizeof out, "%lld:%02lld", whole / 60, whole % 60);
  return out;
}

std::string bytes_text(size_t bytes) {
  char out[32];
  const double mega = static_cast<double>(bytes) / 1048576;
  std::snprintf(out, sizeof out, mega < 1024 ? "%.0f MB" : "%.2f GB",
                mega < 1024 ? mega : mega / 1024);
  return out;
}

/// For people. Lines of progress come at most every `pause` seconds.
class TextReporter : public train::Reporter {
 public:
  TextReporter() : terminal_(::isatty(STDERR_FILENO) != 0) {}

  void started(const train::Forecast& f) override {
    for (const auto& warning : f.warnings) line("note: " + warning);
    char out[256];
    std::snprintf(out, sizeof out, "%lld samples, %lld for validation; %zu parameters; %d threads",
                  static_cast<long long>(f.samples), static_cast<long long>(f.validation_samples),
                  f.parameters, f.threads);
    line(out + (f.device == "CPU" ? std::string() : ", on " + f.device));
    std::snprintf(out, sizeof out,
                  "forecast: %s for weights and optimiser, %s for activations; %.1f ms a step, %s "
                  "an epoch of %lld steps",
                  bytes_text(f.state_bytes).c_str(), bytes_text(f.arena_bytes).c_str(),
                  f.step_seconds * 1e3, clock_text(f.epoch_seconds).c_str(),
                  static_cast<long long>(f.steps_per_epoch));
    line(out);
    if (f.stretches > 1)
      line("what the way back reads is computed again, in " + std::to_string(f.stretches) +
           " stretches, to keep within the memory limit");
  }

  void resumed(int64_t update, bool exact, const std::string& why_not) override {
    line("resumed after update " + std::to_string(update) +
         (exact ? ", exactly" : "; not exact: " + why_not));
  }

  void progress(const train::Progress& p) override {
    const double pause = terminal_ ? 0.2 : 10;
    const bool last = p.update == p.updates;
    if (!last && shown_ && seconds_since(*shown_) < pause) return;
    shown_ = Clock::now();
    char out[320];
    std::snprintf(out, sizeof out,
                  "epoch %.2f, update %lld of %lld: loss %.4f%s, %.0f samples/s, %s left, %s, "
                  "waiting for data %.0f %%",
                  p.epoch, static_cast<long long>(p.update), static_cast<long long>(p.updates),
                  p.loss, score_text(p).c_str(), p.samples_per_second,
                  clock_text(p.seconds_left).c_str(), bytes_text(p.memory_bytes).c_str(),
                  100 * p.wait_share);
    if (terminal_)
      std::fprintf(stderr, "\r\033[K%s %s", bar(p).c_str(), out);
    else
      line(out);
    if (terminal_ && last) std::fputc('\n', stderr);
  }

  void validated(const train::Evaluation& e, int64_t, double epoch, bool best) override {
    char out[200];
    std::snprintf(out, sizeof out, "epoch %.2f: validation loss %.4f", epoch, e.loss);
    std::string text = out;
    for (const auto& [name, value] : e.values) {
      if (name == "loss") continue;
      std::snprintf(out, sizeof out, ", %s %.4f", name.c_str(), value);
      text += out;
    }
    std::snprintf(out, sizeof out, " (%lld samples in %.1f s)%s", static_cast<long long>(e.samples),
                  e.seconds, best ? ", best" : "");
    line(text + out);
  }

  void warned(const std::string& text) override { line("warning: " + text); }

 private:
  static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  static std::string score_text(const train::Progress& p) {
    if (p.metric.empty()) return {};
    char out[64];
    std::snprintf(out, sizeof out, ", %s %.4f", p.metric.c_str(), p.score);
    return out;
  }
  static std::string bar(const train::Progress& p) {
    constexpr int64_t kWidth = 20;
    const auto done = static_cast<size_t>(p.update * kWidth / std::max<int64_t>(1, p.updates));
    return "[" + std::string(done, '=') + std::string(kWidth - done, ' ') + "]";
  }
  void line(const std::string& text) {
    std::fprintf(stderr, "%s%s\n", terminal_ ? "\r\033[K" : "", text.c_str());
  }

  bool terminal_;
  std::optional<Clock::time_point> shown_;
};

/// For programs: one object a line on standard output.
class JsonReporter : public train::Reporter {
 public:
  void started(const train::Forecast& f) override {
    print({{"event", "started"},
           {"samples", f.samples},
           {"validation_samples", f.validation_samples},
           {"steps_per_epoch", f.steps_per_epoch},
           {"updates", f.updates},
           {"parameters", f.parameters},
           {"state_bytes", f.state_bytes},
           {"activation_bytes", f.arena_bytes},
           {"stretches", f.stretches},
           {"step_ms", f.step_seconds * 1e3},
           {"epoch_seconds", f.epoch_seconds},
           {"threads", f.threads},
           {"device", f.device},
           {"warnings", f.warnings}});
  }
  void resumed(int64_t update, bool exact, const std::string& why_not) override {
    print({{"event", "resumed"}, {"update", update}, {"exact", exact}, {"why_not", why_not}});
  }
  void progress(const train::Progress& p) override {
    const bool last = p.update == p.updates;
    const auto now = Clock::now();
    if (!last && shown_ && std::chrono::duration<double>(now - *shown_).count() < 1) return;
    shown_ = now;
    print({{"event", "progress"},
           {"update", p.update},
           {"updates", p.updates},
           {"epoch", p.epoch},
           {"loss", p.loss},
           {"learning_rate", p.rate},
           {"gradient_norm", p.gradient_norm},
           {"samples_per_second", p.samples_per_second},
           {"wait_share", p.wait_share},
           {"seconds_left", p.seconds_left},
           {"memory_bytes", p.memory_bytes}});
  }
  void validated(const train::Evaluation& e, int64_t update, double epoch, bool best) override {
    json row{{"event", "validated"}, {"update", update},     {"epoch", epoch},
             {"best", best},         {"samples", e.samples}, {"metric", e.metric},
             {"score", e.score},     {"seconds", e.seconds}};
    for (const auto& [name, value] : e.values) row[name] = value;
    print(row);
  }
  void checkpointed(int64_t update, double seconds) override {
    print({{"event", "checkpoint"}, {"update", update}, {"seconds", seconds}});
  }
  void warned(const std::string& text) override { print({{"event", "warning"}, {"text", text}}); }

 private:
  static void print(const json& row) {
    std::printf("%s\n", row.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
    std::fflush(stdout);
  }
  std::optional<Clock::time_point> shown_;
};

std::string class_name(const std::vector<std::string>& classes, int64_t label) {
  const auto at = static_cast<size_t>(label);
  return at < classes.size() ? classes[at] : std::to_string(label);
}

}  // namespace

std::unique_ptr<train::Reporter> make_train_reporter(bool as_json) {
  if (as_json) return std::make_unique<JsonReporter>();
  return std::make_unique<TextReporter>();
}

void print_evaluation(const train::Evaluation& found, const std::vector<std::string>& classes,
                      bool by_class) {
  std::printf("%lld samples in %.2f s\n", static_cast<long long>(found.samples), found.seconds);
  for (const auto& [name, value] : found.values) std::printf("%-16s %.5f\n", name.c_str(), value);
  if (!by_class || !found.confusion) return;
  const train::Confusion& c = *found.confusion;
  std::printf("\n%-24s %10s %10s\n", "class", "precision", "recall");
  for (int64_t i = 0; i < c.classes(); ++i)
    std::printf("%-24s %10.4f %10.4f\n", class_name(classes, i).c_str(), c.precision(i),
                c.recall(i));
  std::printf("\nconfusion (rows: true class, columns: predicted)\n");
  for (int64_t i = 0; i < c.classes(); ++i) {
    for (int64_t k = 0; k < c.classes(); ++k)
      std::printf("%7lld", static_cast<long long>(c.at(i, k)));
    std::printf("  %s\n", class_name(classes, i).c_str());
  }
}

std::string evaluation_json(const train::Evaluation& found,
                            const std::vector<std::string>& classes) {
  json out{{"samples", found.samples},
           {"seconds", found.seconds},
           {"metric", found.metric},
           {"score", found.score}};
  for (const auto& [name, value] : found.values) out[name] = value;
  if (found.confusion) {
    const train::Confusion& c = *found.confusion;
    json rows = json::array(), table = json::array();
    for (int64_t i = 0; i < c.classes(); ++i) {
      json row = json::array();
      for (int64_t k = 0; k < c.classes(); ++k) row.push_back(c.at(i, k));
      rows.push_back(row);
      table.push_back({{"class", class_name(classes, i)},
                       {"precision", c.precision(i)},
                       {"recall", c.recall(i)}});
    }
    out["confusion"] = rows;
    out["classes"] = table;
  }
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace dais::cli
