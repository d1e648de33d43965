#pragma once

#include <filesystem>
#include <vector>

#include "devices/sample.h"

namespace dais::devices {

/// Where processes publish what their devices do: DAIS_DEVICE_USE, which also is what makes them do
/// so; empty: nowhere.
std::filesystem::path use_folder();

/// What is published in a folder by processes that live, by process. Files of the dead and what
/// cannot be read are passed over.
std::vector<ProcessUse> process_uses(const std::filesystem::path& folder);

/// The calling process as one that publishes: who it is, nothing of what it does.
ProcessUse this_process();

/// The file of a process in that folder.
std::filesystem::path use_file(const std::filesystem::path& folder, int pid);
/// Writes it anew, in one piece. That it cannot be written is passed over: a full disk must not end
/// a training.
void publish(const std::filesystem::path& file, const ProcessUse& use) noexcept;

}  // namespace dais::devices
