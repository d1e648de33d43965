#include "cli/layers.h"

#include <algorithm>
#include <map>

#include "base/span.h"

namespace dais::cli {
namespace {

using nlohmann::json;
using Key = std::pair<const Plan*, size_t>;

/// What a step did in one run; one inside a loop runs many times.
struct Sum {
  double seconds = 0, bound_seconds = 0;
  StepCost cost;
};

std::map<Key, Sum> sums_of(const std::vector<StepTime>& profile, const cpu::Peaks& peaks) {
  std::map<Key, Sum> out;
  for (const StepTime& time : profile) {
    Sum& sum = out[{time.plan, time.step}];
    const StepCost cost = cost_of(time);
    sum.seconds += time.seconds;
    sum.bound_seconds += peaks.bound(cost.flops, cost.bytes, cost.dtype, time.seconds);
    sum.cost.flops += cost.flops;
    sum.cost.bytes += cost.bytes;
    sum.cost.dtype = cost.dtype;
  }
  return out;
}

Sum median(std::vector<Sum>& runs) {
  const auto middle = runs.begin() + std::ssize(runs) / 2;
  std::nth_element(runs.begin(), middle, runs.end(),
                   [](const Sum& a, const Sum& b) { return a.seconds < b.seconds; });
  return *middle;
}

void add_up(Layers& layers) {
  for (const Layer& step : layers.steps) {
    layers.total.seconds += step.seconds;
    layers.total.bound_seconds += step.bound_seconds;
    layers.total.cost.flops += step.cost.flops;
    layers.total.cost.bytes += step.cost.bytes;
    if (step.reference) layers.reference_seconds += step.seconds;
  }
}

/// Billions a second: of operations where there are products, else of bytes.
std::string rate_text(const Layer& layer) {
  if (layer.seconds <= 0) return "";
  char text[32];
  const bool work = layer.cost.flops > 0;
  std::snprintf(text, sizeof text, work ? "%.1f GFLOP/s" : "%.1f GB/s",
                (work ? layer.cost.flops : layer.cost.bytes) / layer.seconds * 1e-9);
  return text;
}

void print_line(const Layer& layer, double total) {
  std::printf("%9.1f %5.1f%% %9.3f %9.3f %15s %5.0f%%  %-20s %-24s %s\n", layer.seconds * 1e6,
              total > 0 ? 100 * layer.seconds / total : 0, layer.cost.flops * 1e-6,
              layer.cost.bytes * 1e-6, rate_text(layer).c_str(), 100 * layer.fraction(),
              layer.op.c_str(), layer.kernel.c_str(), layer.name.c_str());
}

void print_rate(const char* name, const cpu::Peaks::Rate& rate) {
  std::printf(" %s %.0f (%s)", name, rate.per_second * 1e-9,
              rate.measured ? "measured" : "computed");
}

void print_peaks(const Layers& layers, const PlanOptions& options) {
  const cpu::Peaks& peaks = layers.peaks;
  std::printf("bound: %d threads, %s; GFLOP/s:", options.threads,
              std::string(isa_name(options.isa)).c_str());
  print_rate("f32", peaks.f32);
  if (peaks.f32_in_parts.per_second > 0) print_rate("f32 on tiles", peaks.f32_in_parts);
  print_rate("f64", peaks.f64);
  print_rate("bf16", peaks.bf16);
  print_rate("int8", peaks.i8);
  std::printf("\n       copy GB/s (measured):");
  for (size_t i = 0; i + 1 < peaks.copies.size(); ++i)
    std::printf(" %.0f up to %.0f KiB,", peaks.copies[i].per_second * 1e-9,
                peaks.copies[i].footprint / 1024);
  std::printf(" %.1f beyond; found in %.0f ms\n", peaks.copies.back().per_second * 1e-9,
              layers.peaks_seconds * 1e3);
}

json to_json(const Layer& layer, double total) {
  json out{{"us", layer.seconds * 1e6},
           {"share", total > 0 ? layer.seconds / total : 0},
           {"flops", layer.cost.flops},
           {"bytes", layer.cost.bytes},
           {"bound_us", layer.bound_seconds * 1e6},
           {"bound_fraction", layer.fraction()}};
  if (layer.seconds > 0) {
    out["gflops_per_second"] = layer.cost.flops / layer.seconds * 1e-9;
    out["gbytes_per_second"] = layer.cost.bytes / layer.seconds * 1e-9;
  }
  return out;
}

json to_json(const cpu::Peaks& peaks) {
  json out;
  const auto put = [&](const char* name, const cpu::Peaks::Rate& rate) {
    out[name] = {{"gflops_per_second", rate.per_second * 1e-9}, {"measured", rate.measured}};
  };
  put("f32", peaks.f32);
  put("f64", peaks.f64);
  put("bf16", peaks.bf16);
  put("int8", peaks.i8);
  if (peaks.f32_in_parts.per_second > 0) put("f32_on_tiles", peaks.f32_in_parts);
  for (const auto& copy : peaks.copies)
    out["copy"].push_back({{"up_to_bytes", copy.footprint},
                           {"gbytes_per_second", copy.per_second * 1e-9},
                           {"measured", true}});
  out["copy"].back().erase("up_to_bytes");
  return out;
}

}  // namespace

std::string kernel_name(const Step& step, bool refused) {
  if (step.place == Place::upload) return "to the device";
  if (step.place == Place::download) return "to the CPU";
  if (step.row && !refused) return std::string(step.row->name);
  return step.regions.empty() ? "reference" : "regions";
}

Layers measure_layers(Session& session, const std::vector<Datum>& inputs) {
  constexpr int kRuns = 7;
  Layers out;
  const double start = steady_seconds();
  const PlanOptions& options = session.plan().options();
  out.peaks = cpu::measure_peaks(options.isa, options.threads);
  out.peaks_seconds = steady_seconds() - start;
  std::map<Key, std::vector<Sum>> runs;
  std::vector<StepTime> profile;
  for (int i = 0; i < kRuns; ++i) {
    session.run(inputs, &profile);
    for (const auto& [key, sum] : sums_of(profile, out.peaks)) runs[key].push_back(sum);
  }
  const auto refused = session.refused_steps();
  for (auto& [key, sums] : runs) {
    const auto& [plan, at] = key;
    const Step& step = plan->steps()[at];
    const Sum sum = median(sums);
    const bool plain =
        plan == &session.plan() && std::find(refused.begin(), refused.end(), at) != refused.end();
    Layer layer{step.node->name,
                std::string(step.node->op->name),
                kernel_name(step, plain),
                sum.seconds,
                sum.cost,
                sum.bound_seconds};
    layer.reference = layer.kernel == "reference";
    out.steps.push_back(std::move(layer));
  }
  std::stable_sort(out.steps.begin(), out.steps.end(),
                   [](const Layer& a, const Layer& b) { return a.seconds > b.seconds; });
  add_up(out);
  return out;
}

void print_layers(const Layers& layers, const PlanOptions& options, size_t top) {
  std::printf("\n%9s %6s %9s %9s %15s %6s  %-20s %-24s %s\n", "us", "share", "MFLOP", "MB", "rate",
              "bound", "op", "kernel", "node");
  const double total = layers.total.seconds;
  for (size_t i = 0; i < std::min(top, layers.steps.size()); ++i)
    print_line(layers.steps[i], total);
  Layer all = layers.total;
  all.op = "total";
  all.kernel = std::to_string(layers.steps.size()) + " steps";
  print_line(all, total);
  std::printf("%.1f %% of the time in reference loops\n",
              total > 0 ? 100 * layers.reference_seconds / total : 0);
  print_peaks(layers, options);
}

void add_layers(json& out, const Layers& layers) {
  const double total = layers.total.seconds;
  for (const Layer& layer : layers.steps) {
    json line = to_json(layer, total);
    line["node"] = layer.name;
    line["op"] = layer.op;
    line["kernel"] = layer.kernel;
    out["layers"].push_back(std::move(line));
  }
  out["total"] = to_json(layers.total, total);
  out["reference_share"] = total > 0 ? layers.reference_seconds / total : 0;
  out["peaks"] = to_json(layers.peaks);
}

}  // namespace dais::cli
