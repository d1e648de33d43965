#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "jobs/account.h"

namespace dais::jobs {

struct CopyLimits {
  uint64_t bytes = uint64_t{1} << 30;
  uint64_t files = 100'000;
  int depth = 64;
};

/// Copies a folder so that later edits do not reach the copy: extents are shared where the file
/// system can (reflink), else bytes are copied. Symbolic links are copied as links; sockets, pipes
/// and devices are refused. `to` must not exist; what was copied is removed when the call throws.
/// With an owner, which takes root, a process of his copies what he may read, and `to` is his
/// alone. Throws exhausted over a limit, not_found or unavailable when something cannot be read.
void copy_folder(const std::filesystem::path& from, const std::filesystem::path& to,
                 const CopyLimits& limits = {}, const std::optional<Account>& owner = {});

/// Copies what an open file holds from where it stands; extents are shared where the file system
/// can. A file that grows, or tells less of itself than it holds, is copied a piece beyond `most`
/// at most. `from` is what errors name.
void copy_bytes(int source, int target, uint64_t most, const std::filesystem::path& from);

}  // namespace dais::jobs
