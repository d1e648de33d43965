#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dais::jobs {

struct GroupLimits {
  int64_t cpu_milli = 0;                         ///< 0: none
  int64_t memory_mib = 0;                        ///< 0: none
  std::vector<std::string> denied_devices = {};  ///< such as "c 195:1"
  int64_t processes = 0;                         ///< threads count too; 0: none
};

/// What a group tells of its past.
struct GroupReport {
  std::optional<int64_t> memory_peak_bytes;
  std::optional<int64_t> memory_kills;  ///< processes killed for want of memory
  std::optional<double> cpu_s;
  std::optional<int64_t> processes_refused;  ///< times that its limit of processes held one up
};

/// The control groups of attempts, under one folder of the file systems that the machine mounts;
/// version 1, version 2 and both together. What cannot be had is left out and said: groups are
/// a wall where they exist, never a reason not to run.
class ControlGroups {
 public:
  /// `mount` is where control groups are mounted, `name` the folder of this daemon in them.
  explicit ControlGroups(std::string name, const std::filesystem::path& mount = "/sys/fs/cgroup");

  /// Which walls hold: "cpu", "memory", "pids", "devices", "kill".
  std::vector<std::string> walls() const;
  bool holds(const std::string& wall) const;
  /// Why a wall is missing; one line each.
  const std::vector<std::string>& missing() const { return missing_; }

  /// Makes the groups of an attempt. The result are cgroup.procs files for a process to join.
  std::vector<std::string> create(const std::string& attempt, const GroupLimits& limits);
  /// True when groups can be made before it is known which attempt they are for: those of version 1
  /// can be renamed, those of version 2 cannot.
  bool renamable() const;
  /// Gives the groups `from`, made without limits, to an attempt. False when one could not be.
  bool rename(const std::string& from, const std::string& attempt, const GroupLimits& limits);
  /// Removes the empty groups whose names start like this.
  void remove_all(const std::string& prefix) const;
  /// Of all attempts that have groups.
  std::vector<std::string> names() const;
  /// Finds them again after a restart.
  GroupReport report(const std::string& attempt) const;
  /// The processes in them now.
  std::vector<int> processes(const std::string& attempt) const;
  /// Kills whatever is left in them.
  void kill(const std::string& attempt) const;
  /// Removes empty ones; false when a process is left in one.
  bool remove(const std::string& attempt) const;
  /// Removes the folder of this daemon, once no attempt has groups in it.
  void dissolve() const;

 private:
  struct Controller {
    std::string wall;              // cpu, memory or kill
    int version;                   // 1 or 2
    std::filesystem::path folder;  // of this daemon
  };
  void find(const std::string& wall, const std::filesystem::path& mount);
  static void limit(const Controller& controller, const std::filesystem::path& folder,
                    const GroupLimits& limits);

  std::string name_;
  std::vector<Controller> controllers_;
  std::vector<std::string> missing_;
};

}  // namespace dais::jobs
