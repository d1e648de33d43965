#pragma once

#include "api/compile.h"
#include "cli/command.h"
#include "cli/input_values.h"

namespace dais::cli {

/// Flags that run, bench, explain and compare have in common.
struct RunOptions {
  std::string model;
  InputOptions inputs;
  std::string optimize = "full";
  int threads = 0;
  bool json = false;

  CompileOptions compile() const;
};

/// Adds MODEL, --input, --size, --seed, --optimize, --threads and --json.
void add_run_options(CLI::App& command, RunOptions& options);

}  // namespace dais::cli
