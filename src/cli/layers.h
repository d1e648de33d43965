#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backends/cpu/peaks.h"
#include "runtime/step_cost.h"

namespace dais::cli {

/// One step of a plan, or all of them together.
struct Layer {
  std::string name, op, kernel;
  double seconds = 0;
  StepCost cost = {};
  double bound_seconds = 0;  ///< what the machine would need at least
  bool reference = false;    ///< runs on reference loops, not on a kernel row

  double fraction() const { return seconds > 0 ? bound_seconds / seconds : 0; }
};

/// Where the time of a run goes, slowest step first.
struct Layers {
  std::vector<Layer> steps;
  Layer total;
  double reference_seconds = 0;
  cpu::Peaks peaks;
  double peaks_seconds = 0;  ///< that measuring the peaks took
};

/// Median times over several profiled runs, per step (also of regions), and the peaks of the
/// machine at the plan's level and threads.
Layers measure_layers(Session& session, const std::vector<Datum>& inputs);

void print_layers(const Layers& layers, const PlanOptions& options, size_t top);

/// Adds `layers`, `total`, `reference_share` and `peaks`.
void add_layers(nlohmann::json& out, const Layers& layers);

/// "reference" for steps that have no row, or whose row refused the sizes that came.
std::string kernel_name(const Step& step, bool refused = false);

}  // namespace dais::cli
