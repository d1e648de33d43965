#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/run_options.h"
#include "runtime/session.h"

namespace dais::cli {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Options : RunOptions {
  double duration = 2;
  bool layers = false;
  size_t top = 20;
};

struct Timing {
  double load = 0, compile = 0, first = 0;
  std::vector<double> runs;  ///< seconds, sorted
  double at(double share) const {
    return runs[std::min(runs.size() - 1,
                         static_cast<size_t>(share * static_cast<double>(runs.size())))];
  }
  double mean() const {
    double sum = 0;
    for (double run : runs) sum += run;
    return sum / static_cast<double>(runs.size());
  }
};

struct Layer {
  std::string name, op, kernel;
  double seconds = 0;
  Cost cost;
};

/// Median over several profiled runs, per step (also of regions), slowest first.
std::vector<Layer> measure_layers(Session& session, const std::vector<Datum>& inputs) {
  constexpr int kRuns = 7;
  std::map<std::pair<const Plan*, size_t>, std::vector<double>> times;
  std::vector<StepTime> profile;
  for (int i = 0; i < kRuns; ++i) {
    session.run(inputs, &profile);
    // A step inside a loop runs many times.
    std::map<std::pair<const Plan*, size_t>, double> sums;
    for (const StepTime& step : profile) sums[{step.plan, step.step}] += step.seconds;
    for (const auto& [step, seconds] : sums) times[step].push_back(seconds);
  }
  std::vector<Layer> layers;
  for (auto& [key, runs] : times) {
    const Step& step = key.first->steps()[key.second];
    const auto middle = runs.begin() + std::ssize(runs) / 2;
    std::nth_element(runs.begin(), middle, runs.end());
    Layer layer{step.node->name,
                std::string(step.node->op->name),
                step.row ? std::string(step.row->name) : "reference",
                *middle,
                {}};
    layers.push_back(std::move(layer));
  }
  std::stable_sort(layers.begin(), layers.end(),
                   [](const Layer& a, const Layer& b) { return a.seconds > b.seconds; });
  return layers;
}

void print_layers(const std::vector<Layer>& layers, size_t top) {
  double total = 0, reference = 0;
  for (const Layer& layer : layers) {
    total += layer.seconds;
    if (layer.kernel == "reference") reference += layer.seconds;
  }
  std::printf("\n%8s %6s  %-22s %-26s %s\n", "us", "share", "op", "kernel", "node");
  for (size_t i = 0; i < std::min(top, layers.size()); ++i)
    std::printf("%8.1f %5.1f%%  %-22s %-26s %s\n", layers[i].seconds * 1e6,
                100 * layers[i].seconds / total, layers[i].op.c_str(), layers[i].kernel.c_str(),
                layers[i].name.c_str());
  std::printf("%zu steps, %.1f us in all, %.1f %% of it in reference loops\n", layers.size(),
              total * 1e6, 100 * reference / total);
}

json to_json(const Timing& timing, const std::vector<Layer>& layers, size_t arena_bytes) {
  json out{{"load_ms", timing.load * 1e3},         {"compile_ms", timing.compile * 1e3},
           {"first_run_ms", timing.first * 1e3},   {"runs", timing.runs.size()},
           {"min_ms", timing.runs.front() * 1e3},  {"p50_ms", timing.at(0.5) * 1e3},
           {"p90_ms", timing.at(0.9) * 1e3},       {"p99_ms", timing.at(0.99) * 1e3},
           {"runs_per_second", 1 / timing.mean()}, {"activations_bytes", arena_bytes}};
  for (const Layer& layer : layers)
    out["layers"].push_back({{"node", layer.name},
                             {"op", layer.op},
                             {"kernel", layer.kernel},
                             {"us", layer.seconds * 1e6}});
  return out;
}

void print(const Timing& t, size_t arena_bytes) {
  std::printf("load       %9.2f ms\ncompile    %9.2f ms\nfirst run  %9.2f ms\n", t.load * 1e3,
              t.compile * 1e3, t.first * 1e3);
  std::printf("latency    %9.4f ms median   (min %.4f, p90 %.4f, p99 %.4f; %zu runs)\n",
              t.at(0.5) * 1e3, t.runs.front() * 1e3, t.at(0.9) * 1e3, t.at(0.99) * 1e3,
              t.runs.size());
  std::printf("throughput %9.1f runs/s\nactivations %8.2f MiB\n", 1 / t.mean(),
              static_cast<double>(arena_bytes) / (1 << 20));
}

void bench(const Options& options) {
  Timing timing;
  auto start = Clock::now();
  onnx::Model model = onnx::import_model(options.model, import_options(options.inputs));
  timing.load = seconds_since(start);
  const std::vector<Datum> inputs = make_inputs(model, options.inputs);
  start = Clock::now();
  Session session(compile(std::move(model.graph), options.compile()).plan);
  timing.compile = seconds_since(start);
  start = Clock::now();
  session.run(inputs);
  timing.first = seconds_since(start);
  const auto begin = Clock::now();
  while (timing.runs.size() < 5 || seconds_since(begin) < options.duration) {
    start = Clock::now();
    session.run(inputs);
    timing.runs.push_back(seconds_since(start));
  }
  std::sort(timing.runs.begin(), timing.runs.end());
  const auto layers = options.layers ? measure_layers(session, inputs) : std::vector<Layer>();
  if (options.json) {
    std::printf("%s\n", to_json(timing, layers, session.arena_bytes())
                            .dump(2, ' ', false, json::error_handler_t::replace)
                            .c_str());
    return;
  }
  print(timing, session.arena_bytes());
  if (options.layers) print_layers(layers, options.top);
}

}  // namespace

void add_bench(Program& program) {
  auto* command = program.app.add_subcommand("bench", "Measure a model: latency, load, layers");
  const auto options = std::make_shared<Options>();
  add_run_options(*command, *options);
  command->add_option("--duration", options->duration, "Seconds to measure for")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--layers", options->layers, "Also time every step");
  command->add_option("--top", options->top, "Steps to list with --layers")->capture_default_str();
  command->footer("Example: dais bench model.onnx --threads 2 --layers");
  command->callback([options] { bench(*options); });
}

}  // namespace dais::cli
