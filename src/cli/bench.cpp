#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "backends/cuda/activity.h"
#include "backends/cuda/backend.h"
#include "cli/layers.h"
#include "cli/run_options.h"
#include "cli/trace.h"
#include "runtime/session.h"

namespace dais::cli {
namespace {

using nlohmann::json;

struct Options : RunOptions {
  double duration = 2;
  bool layers = false;
  size_t top = 20;
  std::string profile;  ///< file to write a trace to
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

json to_json(const Timing& timing, size_t arena_bytes) {
  return {{"load_ms", timing.load * 1e3},         {"compile_ms", timing.compile * 1e3},
          {"first_run_ms", timing.first * 1e3},   {"runs", timing.runs.size()},
          {"min_ms", timing.runs.front() * 1e3},  {"p50_ms", timing.at(0.5) * 1e3},
          {"p90_ms", timing.at(0.9) * 1e3},       {"p99_ms", timing.at(0.99) * 1e3},
          {"runs_per_second", 1 / timing.mean()}, {"activations_bytes", arena_bytes}};
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

/// Loads, prepares and runs a model for the first time.
Session start(const Options& options, Timing& timing, std::vector<Datum>& inputs, Trace* trace) {
  std::optional<SpanLog> log;
  if (trace) log.emplace();
  double begin = steady_seconds();
  const auto taken = [&](const char* kind) {
    const double seconds = steady_seconds() - begin;
    if (trace) trace->add(kind, {}, begin, seconds);
    return seconds;
  };
  onnx::Model model = onnx::import_model(options.model, import_options(options.inputs));
  timing.load = taken("load");
  inputs = make_inputs(model, options.inputs);
  begin = steady_seconds();
  Session session(compile(std::move(model.graph), options.compile()).plan);
  warn_about(session.plan());
  timing.compile = taken("compile");
  std::vector<StepTime> profile;
  begin = steady_seconds();
  session.run(inputs, trace ? &profile : nullptr);
  timing.first = taken("first run");
  note_sizes(session);
  if (trace) {
    trace->add(log->records());
    trace->add(profile);
  }
  return session;
}

void measure(Session& session, const std::vector<Datum>& inputs, double duration, Timing& timing) {
  const double begin = steady_seconds();
  while (timing.runs.size() < 5 || steady_seconds() - begin < duration) {
    const double start = steady_seconds();
    session.run(inputs);
    timing.runs.push_back(steady_seconds() - start);
  }
  std::sort(timing.runs.begin(), timing.runs.end());
}

/// What a session runs on; nullptr: the CPU.
cuda::CudaBackend* gpu_of(const Session& session) {
  return dynamic_cast<cuda::CudaBackend*>(session.plan().options().backend.get());
}

/// Records the device where it is hardware and CUPTI can be had; else says why it does not.
std::unique_ptr<cuda::ActivityRecorder> record_device(const Session& session) {
  const auto* backend = gpu_of(session);
  if (!backend || !backend->device().info().hardware) return nullptr;
  static const auto library = cuda::load_cupti(0);
  std::string problem = library.report.problem, remedy = library.report.remedy;
  if (problem.empty()) try {
      return std::make_unique<cuda::ActivityRecorder>(library.api);
    } catch (const Error& error) {
      problem = error.problem();
      remedy = error.remedy();
    }
  std::fprintf(stderr, "dais: warning: the trace has no lanes of the device: %s. %s\n",
               problem.c_str(), remedy.c_str());
  return nullptr;
}

/// The device's share of the traced runs, on the error stream.
void print_use(const std::vector<cuda::Activity>& activities, int device, double from, double to) {
  const cuda::DeviceUse use = cuda::device_use(activities, device, from, to);
  const auto share = [&](double seconds) { return 100 * seconds / use.seconds; };
  std::fprintf(stderr,
               "device     kernels %.1f %%, idle: copying %.1f %%, synchronising %.1f %%, nothing "
               "queued %.1f %%; %.3g MB to it, %.3g MB back\n",
               share(use.kernels), share(use.copies), share(use.synchronising),
               share(use.nothing_queued), use.to_device_bytes / 1e6, use.from_device_bytes / 1e6);
}

/// A few runs of the settled session.
void trace_runs(Session& session, const std::vector<Datum>& inputs, Trace& trace) {
  constexpr int kRuns = 3;
  const auto recorder = record_device(session);
  const double began = steady_seconds();
  const SpanLog log;
  std::vector<StepTime> profile;
  for (int i = 0; i < kRuns; ++i) {
    const double start = steady_seconds();
    session.run(inputs, &profile);
    trace.add("run", {}, start, steady_seconds() - start);
    trace.add(profile);
  }
  trace.add(log.records());
  if (!recorder) return;
  const double ended = steady_seconds();
  const auto activities = recorder->stop();
  trace.add(activities);
  print_use(activities, gpu_of(session)->device().info().ordinal, began, ended);
}

void bench(const Options& options) {
  Timing timing;
  Trace trace;
  std::vector<Datum> inputs;
  const bool traced = !options.profile.empty();
  Session session = start(options, timing, inputs, traced ? &trace : nullptr);
  measure(session, inputs, options.duration, timing);
  const PlanOptions& plan = session.plan().options();
  if (traced) {
    trace_runs(session, inputs, trace);
    trace.write(options.profile, plan.threads);
  }
  std::optional<Layers> layers;
  if (options.layers) layers = measure_layers(session, inputs);
  if (options.json) {
    json out = to_json(timing, session.arena_bytes());
    if (layers) add_layers(out, *layers);
    std::printf("%s\n", out.dump(2, ' ', false, json::error_handler_t::replace).c_str());
    return;
  }
  print(timing, session.arena_bytes());
  if (layers) print_layers(*layers, plan, options.top);
}

}  // namespace

void add_bench(Program& program) {
  auto* command = program.app.add_subcommand("bench", "Measure a model: latency, load, layers");
  const auto options = std::make_shared<Options>();
  add_run_options(*command, *options);
  command->add_option("--duration", options->duration, "Seconds to measure for")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--layers", options->layers,
                    "Also time every step, with its work and its share of what the machine can");
  command->add_option("--top", options->top, "Steps to list with --layers")->capture_default_str();
  command
      ->add_option("--profile", options->profile,
                   "Write a trace for Perfetto or chrome://tracing: loading, passes, kernels, "
                   "steps")
      ->type_name("FILE");
  command->footer("Example: dais bench model.onnx --threads 2 --layers");
  command->callback([options] { bench(*options); });
}

}  // namespace dais::cli
