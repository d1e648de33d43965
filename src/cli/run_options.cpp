#include "cli/run_options.h"

namespace dais::cli {

CompileOptions RunOptions::compile() const {
  CompileOptions out;
  out.optimize = optimize_from_name(optimize);
  out.threads = threads;
  return out;
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
  command.add_flag("--json", options.json, "Print JSON");
}

}  // namespace dais::cli
