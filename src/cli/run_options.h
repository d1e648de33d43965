#pragma once

#include "api/compile.h"
#include "api/device.h"
#include "cli/command.h"
#include "cli/input_values.h"
#include "runtime/session.h"

namespace dais::cli {

/// Where a command computes.
struct DeviceFlags {
  std::string device = "cpu";
  std::string precision = "highest";

  /// The device; null: the CPU. Which one "auto" has taken is written to the error stream.
  std::shared_ptr<Backend> open() const;
};
/// Adds --device and --matmul-precision to a command.
void add_device_flags(CLI::App& command, DeviceFlags& flags);

/// Flags that run, bench, explain and compare have in common.
struct RunOptions {
  std::string model;
  InputOptions inputs;
  std::string optimize = "full";
  int threads = 0;
  DeviceFlags place;
  bool json = false;

  CompileOptions compile() const;
};

/// Writes to the error stream what the plan runs on the CPU although it has a device.
void warn_about(const Plan& plan);

/// Writes to the error stream what the sizes of the last run have decided otherwise than the plan
/// says.
void note_sizes(const Session& session);

/// Adds MODEL, --input, --size, --seed, --optimize, --threads, --json, those of DeviceFlags and
/// --ops.
void add_run_options(CLI::App& command, RunOptions& options);

}  // namespace dais::cli
