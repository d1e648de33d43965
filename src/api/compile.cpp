#include "api/compile.h"

#include <algorithm>

#include "backends/cpu/isa.h"
#include "base/threads.h"

namespace dais {
namespace {

class CpuTarget : public Target {
 public:
  CpuTarget(Isa isa, int threads) : isa_(isa), threads_(threads) {}
  bool has_kernel(const Node& node) const override {
    const KernelQuery query{node, isa_, threads_};
    const auto& rows = cpu_kernels().rows(*node.op);
    return std::any_of(rows.begin(), rows.end(), [&](const KernelRow* row) {
      return row->isa <= isa_ && row->accepts(query);
    });
  }
  Isa isa() const override { return isa_; }
  int threads() const override { return threads_; }

 private:
  Isa isa_;
  int threads_;
};

PlanOptions plan_options(const CompileOptions& options) {
  PlanOptions out;
  out.threads = options.threads > 0 ? options.threads : usable_cores();
  out.isa = options.isa.value_or(cpu::isa());
  out.kernels = options.optimize != Optimize::off;
  return out;
}

}  // namespace

Optimize optimize_from_name(std::string_view name) {
  static const std::vector<std::string> names{"off", "portable", "full"};
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<Optimize>(i);
  const std::string guess = nearest(name, names);
  throw Error(Code::invalid_argument, "'" + std::string(name) + "' is no optimisation level", "",
              "Use off, portable or full" + (guess.empty() ? "" : "; did you mean " + guess + "?"));
}

std::vector<PassReport> optimize(Graph& graph, const CompileOptions& options) {
  if (options.optimize == Optimize::off) return {};
  const PlanOptions plan = plan_options(options);
  const CpuTarget target(plan.isa, plan.threads);
  PassOptions pass_options{options.passes_until, options.verify_passes};
  auto reports = run_passes(graph, portable_passes(), target, pass_options);
  if (options.optimize == Optimize::portable) return reports;
  if (pass_options.until >= 0) pass_options.until -= static_cast<int>(reports.size());
  auto more = run_passes(graph, target_passes(), target, pass_options);
  reports.insert(reports.end(), more.begin(), more.end());
  return reports;
}

Compiled compile(std::unique_ptr<Graph> graph, const CompileOptions& options) {
  Compiled out;
  out.passes = optimize(*graph, options);
  out.plan = Plan::create(std::move(graph), plan_options(options));
  return out;
}

}  // namespace dais
