#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace dais {

/// CPU time, in cores, that control groups grant a process; none when nothing limits it. The
/// tightest group on the way from the process to the root counts, for version 1, 2 and both mounted
/// together. `membership` is the text of /proc/PID/cgroup, `mount` the folder of the control-group
/// file systems. Files that are missing or malformed set no limit; nothing is thrown.
std::optional<double> cpu_quota_cores(std::string_view membership,
                                      const std::filesystem::path& mount = "/sys/fs/cgroup");

/// The same for the calling process.
std::optional<double> cpu_quota_cores();

/// What a control group lets its processes take, and what they have.
struct GroupMemory {
  int64_t limit_bytes = 0, used_bytes = 0;
  bool operator==(const GroupMemory&) const = default;
};

/// Of the group with the lowest limit, found as above; none when nothing limits memory.
std::optional<GroupMemory> group_memory(std::string_view membership,
                                        const std::filesystem::path& mount = "/sys/fs/cgroup");

}  // namespace dais
