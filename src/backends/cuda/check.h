#pragma once

#include "backends/cuda/tables.h"

namespace dais::cuda {

/// Throws what a failed call of the driver means: `exhausted` when memory is full, `unavailable`
/// when the device cannot go on, `internal` when the call was wrong. `action` says what was tried.
void check(const DriverApi& driver, DriverResult result, const std::string& action);

/// Whether every later call of the process on this device fails too.
bool is_lost(DriverResult result);

}  // namespace dais::cuda
