#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/target.h"

namespace dais {

/// A named rewrite of a graph; true if it changed anything. It sees one graph at a time: regions
/// are visited by run_passes.
struct Pass {
  std::string_view name;
  bool (*run)(Graph& graph, const Target& target);
};

/// Passes whose result is still plain ONNX, in order.
std::span<const Pass> portable_passes();
/// Passes that prepare for the machine (layout, fusion), in order; run after the portable ones.
std::span<const Pass> target_passes();

/// Those for a machine with a device, instead of target_passes.
std::span<const Pass> device_passes();

struct PassReport {
  std::string_view name;
  bool changed = false;
  double seconds = 0;
  size_t nodes = 0;  ///< after the pass, regions included
};

struct PassOptions {
  /// Stop after this many passes (for finding a bad one); negative: run all.
  int until = -1;
  bool verify = true;  ///< check the graph's invariants after each pass
};

/// Runs passes over the graph and all its regions.
std::vector<PassReport> run_passes(Graph& graph, std::span<const Pass> passes, const Target& target,
                                   const PassOptions& options = {});

}  // namespace dais
