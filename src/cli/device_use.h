#pragma once

#include <nlohmann/json.hpp>

namespace dais::cli {

/// What processes of this machine publish of what they do with devices, where DAIS_DEVICE_USE says:
/// by device, shares of the time, and bytes a second.
nlohmann::ordered_json device_uses();
/// Devices are called as the scheduler does in its status.
void print_device_uses(const nlohmann::ordered_json& status);

}  // namespace dais::cli
