#include <nlohmann/json.hpp>

#include "cli/layers.h"
#include "cli/run_options.h"

namespace dais::cli {
namespace {

using nlohmann::json;

void print_passes(const std::vector<PassReport>& passes) {
  std::printf("%-28s %8s %8s  %s\n", "pass", "ms", "nodes", "");
  for (const PassReport& pass : passes)
    std::printf("%-28s %8.2f %8zu  %s\n", std::string(pass.name).c_str(), pass.seconds * 1e3,
                pass.nodes, pass.changed ? "changed" : "");
}

std::string body_text(const Node& node) {
  std::string out;
  for (const auto& region : node.regions)
    for (const auto& inner : region->nodes())
      out += (out.empty() ? "" : " ") + std::string(inner->op->name);
  return out.empty() ? "" : " {" + out + "}";
}

const char* place_name(const Step& step) {
  return step.place == Place::host ? "cpu" : step.place == Place::device ? "device" : "copy";
}

void print_steps(const Plan& plan) {
  std::printf("\n%5s  %-24s %-26s %-7s %-10s %s\n", "step", "op", "kernel", "place", "sizes",
              "node");
  for (size_t i = 0; i < plan.steps().size(); ++i) {
    const Step& step = plan.steps()[i];
    std::printf("%5zu  %-24s %-26s %-7s %-10s %s -> %s%s\n", i,
                std::string(step.node->op->name).c_str(), kernel_name(step).c_str(),
                place_name(step), step.bound_early ? "bound" : "running", step.node->name.c_str(),
                step.node->outs[0]->type.text().c_str(), body_text(*step.node).c_str());
    for (const auto& [row, reason] : step.refusals)
      std::printf("%7s%s: %s\n", "", row.c_str(), reason.c_str());
    if (step.kernel && !step.kernel->detail().empty())
      std::printf("%7s%s\n", "", step.kernel->detail().c_str());
  }
}

json to_json(const Compiled& compiled) {
  json out;
  for (const PassReport& pass : compiled.passes)
    out["passes"].push_back({{"name", pass.name},
                             {"changed", pass.changed},
                             {"ms", pass.seconds * 1e3},
                             {"nodes", pass.nodes}});
  for (const Step& step : compiled.plan->steps()) {
    json row{{"node", step.node->name},
             {"op", step.node->op->name},
             {"kernel", kernel_name(step)},
             {"place", place_name(step)},
             {"output", step.node->outs[0]->type.text()},
             {"bound_early", step.bound_early}};
    for (const auto& [name, reason] : step.refusals) row["refused"][name] = reason;
    out["steps"].push_back(std::move(row));
  }
  for (const std::string& warning : compiled.plan->warnings()) out["warnings"].push_back(warning);
  return out;
}

void explain(const RunOptions& options, int passes_until, bool text) {
  onnx::Model model = onnx::import_model(options.model, import_options(options.inputs));
  CompileOptions compile_options = options.compile();
  compile_options.passes_until = passes_until;
  compile_options.keep_constants = text;
  const Compiled compiled = compile(std::move(model.graph), compile_options);
  if (text) {
    std::printf("%s", compiled.plan->graph().text().c_str());
    return;
  }
  if (options.json) {
    std::printf("%s\n",
                to_json(compiled).dump(2, ' ', false, json::error_handler_t::replace).c_str());
    return;
  }
  print_passes(compiled.passes);
  print_steps(*compiled.plan);
  const Plan& plan = *compiled.plan;
  if (plan.device_constants())
    std::printf("\nconstants on %s: %.1f MiB\n", plan.options().backend->name().c_str(),
                static_cast<double>(plan.device_constants()->bytes()) / (1 << 20));
  for (const std::string& warning : plan.warnings()) std::printf("warning: %s\n", warning.c_str());
}

}  // namespace

void add_explain(Program& program) {
  auto* command =
      program.app.add_subcommand("explain", "Show passes, chosen kernels and why others were not");
  const auto options = std::make_shared<RunOptions>();
  const auto until = std::make_shared<int>(-1);
  const auto text = std::make_shared<bool>(false);
  add_run_options(*command, *options);
  command->add_option("--passes-until", *until, "Run only the first so many passes");
  command->add_flag("--text", *text, "Print the rewritten graph as text instead");
  command->footer("Example: dais explain model.onnx --threads 1");
  command->callback([options, until, text] { explain(*options, *until, *text); });
}

}  // namespace dais::cli
