#pragma once

#include <optional>

#include "dais/model.h"
#include "passes/pass.h"
#include "runtime/plan.h"

namespace dais {

/// "off", "portable" or "full"; throws `invalid_argument` with the nearest of them.
Optimize optimize_from_name(std::string_view name);

struct CompileOptions {
  Optimize optimize = Optimize::full;
  int threads = 0;            ///< 0: all usable cores
  std::optional<Isa> isa;     ///< default: the machine's
  int passes_until = -1;      ///< stop after so many passes; negative: all
  bool verify_passes = true;  ///< check the graph after each pass
  std::vector<StatePair> states = {};
  /// A device that runs what it has kernels for; null: the CPU alone. Ignored when `optimize` is
  /// off, which runs reference loops.
  std::shared_ptr<Backend> backend = nullptr;
  bool keep_constants = false;  ///< for who looks at the plan's graph: also packed ones
};

struct Compiled {
  std::shared_ptr<const Plan> plan;
  std::vector<PassReport> passes;
};

/// Runs the pipelines and makes the plan. Throws what passes and Plan::create throw.
Compiled compile(std::unique_ptr<Graph> graph, const CompileOptions& options = {});

/// The second half of compile(): a plan for the graph as it stands.
std::shared_ptr<const Plan> plan(std::unique_ptr<Graph> graph, const CompileOptions& options);

/// The first half, the rewriting: what `convert --fold` and `explain` look at.
std::vector<PassReport> optimize(Graph& graph, const CompileOptions& options);

}  // namespace dais
