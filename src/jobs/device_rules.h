#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dais::jobs {

/// Denies the processes of a control group of version 2 some character devices, such as "c 195:1":
/// that version has no files for it, but runs a small program of ours at every opening. Lasts as
/// long as the group. False when the system refuses, or a device is not written like that.
bool deny_devices(const std::filesystem::path& group, const std::vector<std::string>& devices);

/// Whether this system lets us; leaves nothing behind.
bool can_deny_devices(const std::filesystem::path& group);

}  // namespace dais::jobs
