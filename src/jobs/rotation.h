#pragma once

#include <cstdint>
#include <filesystem>

namespace dais::jobs {

/// Bytes of a log; 0 when there is none.
int64_t log_bytes(const std::filesystem::path& log);

/// Moves what a log holds to `LOG.old`, which replaces an older one, and starts it anew; of a log
/// over `limit` bytes only the end is kept. Whoever writes to it, appending, goes on.
void rotate(const std::filesystem::path& log, int64_t limit);

/// Cuts the log of a job that has ended down to its last `limit` bytes.
void trim(const std::filesystem::path& log, int64_t limit);

}  // namespace dais::jobs
