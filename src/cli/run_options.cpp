#include "cli/run_options.h"

#include <map>

#include "cli/custom_ops.h"

namespace dais::cli {

CompileOptions RunOptions::compile() const {
  CompileOptions out;
  out.optimize = optimize_from_name(optimize);
  out.threads = threads;
  out.backend = place.open();
  return out;
}

void add_device_flags(CLI::App& command, DeviceFlags& flags) {
  command
      .add_option(
          "--device", flags.device,
          "Where to run: cpu, gpu or gpu:N, emulated (GPU kernels on the CPU; no hardware), "
          "or auto (a GPU when there is one)")
      ->capture_default_str();
  command
      .add_option("--matmul-precision", flags.precision,
                  "Products of f32 on a GPU: highest (f32), high (TF32) or medium (bf16, where its "
                  "libraries do them)")
      ->capture_default_str();
}

std::shared_ptr<Backend> DeviceFlags::open() const {
  DeviceChoice choice = choose_device(device, matmul_precision_from_name(precision));
  if (device == "auto") std::fprintf(stderr, "dais: runs on %s\n", choice.text.c_str());
  return std::move(choice.backend);
}

void warn_about(const Plan& plan) {
  for (const std::string& warning : plan.warnings())
    std::fprintf(stderr, "dais: warning: %s\n", warning.c_str());
}

void note_sizes(const Session& session) {
  std::map<std::string, std::vector<std::string>> where;
  for (const auto& [step, note] : session.notes())
    where[note].push_back(session.plan().steps()[step].node->where());
  for (const auto& [note, nodes] : where)
    std::fprintf(
        stderr, "dais: note: %s (%s%s)\n", note.c_str(), nodes[0].c_str(),
        nodes.size() > 1 ? (" and " + std::to_string(nodes.size() - 1) + " more").c_str() : "");
}

void add_run_options(CLI::App& command, RunOptions& options) {
  command.add_option("model", options.model, "ONNX file")->required();
  command.add_option("--input", options.inputs.inputs, kInputHelp)->type_name("NAME=VALUE");
  command.add_option("--size", options.inputs.sizes, "Size of an open dimension of drawn inputs")
      ->type_name("SYMBOL=SIZE");
  command.add_option("--seed", options.inputs.seed, "Seed of drawn inputs")->capture_default_str();
  command.add_option("--optimize", options.optimize, "Passes to run: off, portable or full")
      ->capture_default_str();
  command.add_option("--threads", options.threads, "Threads to use; 0: all usable cores")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  add_device_flags(command, options.place);
  add_ops_option(command);
  command.add_flag("--json", options.json, "Print JSON");
}

}  // namespace dais::cli
