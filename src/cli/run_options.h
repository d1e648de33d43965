#pragma once

#include "api/compile.h"
#include "api/device.h"
#include "cli/command.h"
#include "cli/input_values.h"

namespace dais::cli {

/// Flags that run, bench, explain and compare have in common.
struct RunOptions {
  std::string model;
  InputOptions inputs;
  std::string optimize = "full";
  int threads = 0;
  std::string device = "cpu";
  std::string precision = "highest";
  bool json = false;

  CompileOptions compile() const;
};

/// Adds --device to a command.
void add_device_option(CLI::App& command, std::string& device);
/// Adds --matmul-precision to a command.
void add_precision_option(CLI::App& command, std::string& precision);
/// Sets it; throws `unsupported` where it asks the CPU for less than the highest.
void apply_precision(Backend* backend, const std::string& precision);
/// The device of that name; which one "auto" has taken is written to the error stream.
std::shared_ptr<Backend> open_device(const std::string& name);
/// Writes to the error stream what the plan runs on the CPU although it has a device.
void warn_about(const Plan& plan);

/// Adds MODEL, --input, --size, --seed, --optimize, --threads, --device and --json.
void add_run_options(CLI::App& command, RunOptions& options);

}  // namespace dais::cli
