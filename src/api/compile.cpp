#include "api/compile.h"

#include <algorithm>

#include "backends/cpu/isa.h"
#include "base/threads.h"
#include "ops/fused/fused.h"
#include "runtime/backend.h"

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

/// The CPU with a device: what passes fuse is for the device, as the CPU takes the rest unfused.
class DeviceTarget : public CpuTarget {
 public:
  DeviceTarget(Isa isa, int threads, const Backend& backend)
      : CpuTarget(isa, threads), backend_(backend) {}
  bool has_kernel(const Node& node) const override {
    const KernelQuery query{node, isa(), threads(), &backend_};
    const auto& rows = backend_.kernels().rows(*node.op);
    return std::any_of(rows.begin(), rows.end(),
                       [&](const KernelRow* row) { return row->accepts(query).accepted; });
  }

 private:
  const Backend& backend_;
};

/// The graph for fixed sizes: inference runs anew from the inputs on, with fused nodes opened, and
/// the passes use what it finds.
std::unique_ptr<Graph> specialize(const Graph& graph, std::span<const Shape> inputs,
                                  const CompileOptions& options) {
  const auto open = graph.clone();
  std::vector<Node*> fused;
  for (const auto& node : open->nodes())
    if (node->as<Fused>()) fused.push_back(node.get());
  for (Node* node : fused) {
    Graph::InsertBefore place(*open, node);
    const Values results = node->op->decompose(*open, *node);
    for (size_t i = 0; i < results.size(); ++i) open->replace_uses(node->outs[i], results[i]);
    open->erase(*node);
  }
  auto out = std::make_unique<Graph>();
  out->name = graph.name;
  Values arguments;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& input = *open->inputs[i];
    const Dims dims(inputs[i].begin(), inputs[i].end());
    arguments.push_back(out->add_input(Type::tensor(input.type.dtype, dims), input.name));
  }
  out->outputs = open->inline_into(*out, arguments);
  optimize(*out, options);
  return out;
}

PlanOptions plan_options(const CompileOptions& options) {
  PlanOptions out;
  out.threads = options.threads > 0 ? options.threads : usable_cores();
  out.isa = options.isa.value_or(cpu::isa());
  out.kernels = options.optimize != Optimize::off;
  out.states = options.states;
  out.backend = options.backend;
  out.keep_constants = options.keep_constants;
  if (options.optimize == Optimize::full)
    out.specialize = [narrow = options](const Graph& graph, std::span<const Shape> inputs) mutable {
      narrow.verify_passes = false;
      return specialize(graph, inputs, narrow);
    };
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
  const CpuTarget cpu(plan.isa, plan.threads);
  std::optional<DeviceTarget> device;
  if (plan.backend) device.emplace(plan.isa, plan.threads, *plan.backend);
  const Target& target = device ? static_cast<const Target&>(*device) : cpu;
  PassOptions pass_options{options.passes_until, options.verify_passes};
  auto reports = run_passes(graph, portable_passes(), target, pass_options);
  if (options.optimize == Optimize::portable) return reports;
  if (pass_options.until >= 0) pass_options.until -= static_cast<int>(reports.size());
  auto more = run_passes(graph, device ? device_passes() : target_passes(), target, pass_options);
  reports.insert(reports.end(), more.begin(), more.end());
  return reports;
}

std::shared_ptr<const Plan> plan(std::unique_ptr<Graph> graph, const CompileOptions& options) {
  return Plan::create(std::move(graph), plan_options(options));
}

Compiled compile(std::unique_ptr<Graph> graph, const CompileOptions& options) {
  Compiled out;
  out.passes = optimize(*graph, options);
  out.plan = plan(std::move(graph), options);
  return out;
}

}  // namespace dais
