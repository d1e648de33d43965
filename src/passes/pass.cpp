#include "passes/pass.h"

#include <chrono>

#include "base/span.h"
#include "ops/fused/fused.h"

namespace dais {
namespace {

/// Bodies of fused nodes are done with: kernels were chosen for them as they stand.
bool run_everywhere(Graph& graph, const Pass& pass, const Target& target) {
  bool changed = false;
  for (const auto& node : graph.nodes())
    if (!node->as<Fused>())
      for (const auto& region : node->regions) changed |= run_everywhere(*region, pass, target);
  return pass.run(graph, target) || changed;
}

size_t count_nodes(const Graph& graph) {
  size_t count = graph.size();
  for (const auto& node : graph.nodes())
    for (const auto& region : node->regions) count += count_nodes(*region);
  return count;
}

}  // namespace

std::vector<PassReport> run_passes(Graph& graph, std::span<const Pass> passes, const Target& target,
                                   const PassOptions& options) {
  std::vector<PassReport> reports;
  for (const Pass& pass : passes) {
    if (options.until >= 0 && reports.size() >= static_cast<size_t>(options.until)) break;
    const Span span("pass", pass.name);
    const auto start = std::chrono::steady_clock::now();
    const bool changed = run_everywhere(graph, pass, target);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (options.verify && changed) {
      try {
        graph.verify();
      } catch (const Error& error) {
        throw error.at("after pass " + std::string(pass.name));
      }
    }
    reports.push_back({pass.name, changed, taken.count(), count_nodes(graph)});
  }
  return reports;
}

}  // namespace dais
