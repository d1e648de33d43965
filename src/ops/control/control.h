#pragma once

#include "ir/op.h"

namespace dais {

/// Runs region 0 when the scalar input is true, else region 1. Inputs after the condition: what
/// region 0 uses from outside (`then_captures` of them), then what region 1 uses.
struct If {
  int64_t then_captures = 0;
  static constexpr auto fields = std::tuple{field("then_captures", &If::then_captures)};
  static const Op op;
};

/// ONNX Loop. Inputs: trip count (may be left out), condition (may be left out), `states` carried
/// values, captures. Region: (iteration, condition, states…, captures…) → (condition, states…,
/// scans…). Outputs: final states, then the scans stacked along a new axis 0.
struct Loop {
  int64_t states = 0;
  static constexpr auto fields = std::tuple{field("states", &Loop::states)};
  static const Op op;
};

/// ONNX Scan. Inputs: `states` carried values, `scans` sequences, captures. Region: (states…, one
/// slice of each sequence…, captures…) → (states…, slices…). Outputs: final states, then the slices
/// stacked along output_axes. Direction 1 runs or stacks backwards.
struct Scan {
  int64_t states = 0, scans = 0;
  std::vector<int64_t> input_axes, input_directions, output_axes, output_directions;
  static constexpr auto fields = std::tuple{field("states", &Scan::states),
                                            field("scans", &Scan::scans),
                                            field("input_axes", &Scan::input_axes),
                                            field("input_directions", &Scan::input_directions),
                                            field("output_axes", &Scan::output_axes),
                                            field("output_directions", &Scan::output_directions)};
  static const Op op;
};

}  // namespace dais
