#include <cstdio>
#include <fstream>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "jobs/simulator.h"

namespace dais::cli {
namespace {

struct Arguments {
  std::string trace, policy = "default", svg;
  jobs::SimulationOptions simulation;
  bool json = false;
};

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) {
    throw Error(Code::unavailable, "cannot write the timeline", path,
                "Check the folder, its rights and the free space");
  }
}

void simulate(Arguments& arguments) {
  // The name first: a slip in it should not cost reading the trace.
  jobs::Policy policy = jobs::policy_named(arguments.policy);
  policy.tenure_share = arguments.simulation.policy.tenure_share;
  policy.tenure_wait_s = arguments.simulation.policy.tenure_wait_s;
  policy.preempt_gain = arguments.simulation.policy.preempt_gain;
  policy.min_run_s = arguments.simulation.policy.min_run_s;
  policy.las_threshold_gpu_s = arguments.simulation.policy.las_threshold_gpu_s;
  arguments.simulation.policy = policy;
  const auto report = jobs::simulate(jobs::read_trace(arguments.trace), arguments.simulation);
  if (!arguments.svg.empty()) {
    write_text(arguments.svg, jobs::timeline_svg(report, arguments.simulation.gpus));
  }
  const std::string text =
      arguments.json ? jobs::report_json(report) + "\n" : jobs::report_text(report);
  std::fputs(text.c_str(), stdout);
}

}  // namespace

void add_simulate(Program& program) {
  auto* command = program.app.add_subcommand(
      "simulate", "Replay a trace of jobs through a scheduling policy on a virtual clock");
  const auto arguments = std::make_shared<Arguments>();
  jobs::SimulationOptions& simulation = arguments->simulation;
  command->add_option("trace", arguments->trace, "CSV file, gzip-compressed or not")->required();
  command->add_option("--gpus", simulation.gpus, "GPUs of the machine")->capture_default_str();
  command->add_option("--gpus-per-host", simulation.gpus_per_host, "GPUs of one host")
      ->capture_default_str();
  command->add_option("--policy", arguments->policy, "fifo, priority, fair, las or default")
      ->capture_default_str();
  command->add_option("--resume-cost", simulation.resume_cost_s, "Seconds charged per resume")
      ->capture_default_str();
  command
      ->add_option("--cycle", simulation.cycle_s,
                   "Seconds between decisions; 0 decides at every event")
      ->capture_default_str();
  command
      ->add_option("--tenure-share", simulation.policy.tenure_share,
                   "Part of the machine that goes by seniority")
      ->capture_default_str();
  command
      ->add_option("--tenure-wait", simulation.policy.tenure_wait_s,
                   "Seconds of waiting after which seniority counts")
      ->capture_default_str();
  command
      ->add_option("--preempt-gain", simulation.policy.preempt_gain,
                   "Times a job must be worth more than the one it stops")
      ->capture_default_str();
  command
      ->add_option("--min-run", simulation.policy.min_run_s,
                   "Seconds a job runs before it can be stopped")
      ->capture_default_str();
  command
      ->add_option("--las-threshold", simulation.policy.las_threshold_gpu_s,
                   "GPU seconds of the first queue of las")
      ->capture_default_str();
  command->add_option("--svg", arguments->svg, "Write a timeline to this file");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->footer("Example: dais simulate trace.csv.gz --gpus 512 --policy default --json");
  command->callback([arguments] { simulate(*arguments); });
}

}  // namespace dais::cli
