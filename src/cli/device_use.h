#pragma once

#include <nlohmann/json.hpp>

#include "devices/sample.h"

namespace dais::cli {

/// What processes publish of what they do with devices: by device, shares of the time, and bytes a
/// second.
nlohmann::ordered_json device_uses(const std::vector<devices::ProcessUse>& processes);
/// Devices are called as the scheduler does in its status.
void print_device_uses(const std::vector<devices::ProcessUse>& processes,
                       const nlohmann::ordered_json& status);

}  // namespace dais::cli
