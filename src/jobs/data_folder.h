#pragma once

#include <filesystem>

namespace dais::jobs {

/// Makes a folder, and those above it, for this user alone. Throws exhausted on a full disk, else
/// unavailable.
void make_folder(const std::filesystem::path& folder);

/// Makes the data folder of a daemon, or takes one of before. What lies in it is for its user
/// alone; `for_everybody`: others may pass through it to what is named to them, the daemon's socket
/// and copies of their working folders. Throws invalid_argument, and changes nothing, when the
/// folder is another user's, or holds other things and no store; else as make_folder() does.
void make_data_folder(const std::filesystem::path& folder, bool for_everybody);

/// Lets others pass through a folder without seeing what is in it. Throws unavailable.
void let_pass(const std::filesystem::path& folder);

}  // namespace dais::jobs
