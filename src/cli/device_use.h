#pragma once

#include <nlohmann/json.hpp>

namespace dais::cli {

/// What processes of this machine publish of what they do with devices, where DAIS_DEVICE_USE says:
/// shares of the time, and bytes a second.
nlohmann::ordered_json device_uses();
void print_device_uses();

}  // namespace dais::cli
