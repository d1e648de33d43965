#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jobs/account.h"
#include "jobs/standby.h"

namespace dais::jobs {

/// What one attempt of a job runs.
struct Launch {
  std::vector<std::string> command;      ///< program and arguments; no shell is involved
  std::vector<std::string> environment;  ///< NAME=value, nothing else is passed on
  std::string folder;                    ///< where it runs
  std::string log;                       ///< file that takes its output, appended to
  std::vector<std::string> groups = {};  ///< cgroup.procs files that it joins before it runs
  std::optional<Account> user = {};      ///< runs as this user; needs root
  std::string tmp = {};  ///< a folder that it sees as /tmp and /var/tmp; needs root. Empty: none
};

/// A process that cannot be mistaken for another one with the same number.
struct ProcessId {
  pid_t pid = 0;
  std::string boot_id;
  uint64_t start_ticks = 0;  ///< since boot

  bool operator==(const ProcessId&) const = default;
};

/// The identity of a process, or nothing when there is none with that number.
std::optional<ProcessId> identify(pid_t pid);
/// Seconds since a process of this boot began.
double age_s(const ProcessId& process);

/// What was read from and written to storage.
struct DiskUse {
  int64_t read_bytes = 0, written_bytes = 0;
};
/// Of a process and of its children that it waited for; nothing when the system does not tell.
std::optional<DiskUse> disk_use(pid_t pid);
/// The parent of a process; 0 when it is gone.
pid_t parent_of(pid_t pid);

/// Starts an attempt under a shim, which outlives the caller: the parent of the job's processes,
/// leader of their session and reaper of their orphans. `attempt_folder` must not exist; in it the
/// shim
/// - holds a lock for as long as any process of the attempt may run,
/// - records the job's process before that process executes anything,
/// - leaves the exit status in a file whose space was taken before the start, so that a full disk
///   cannot lose it.
/// When the job's first process ends, whatever it left behind is killed. SIGTERM to the shim goes
/// to the job's process group.
///
/// Returns when the lock is held and the process recorded. Throws not_found when the program does
/// not exist, exhausted or unavailable when the system refuses; then nothing was executed.
ProcessId start_attempt(const std::string& attempt_folder, const Launch& launch);
/// The same with a shim made ahead, which has joined its groups: those of `launch` are not joined.
ProcessId start_attempt(const std::string& attempt_folder, const Launch& launch,
                        const Standby& standby);

enum class AttemptState {
  absent,   ///< it was never started
  queued,   ///< handed over to somebody who starts it later
  running,  ///< its shim holds the lock
  ended,    ///< the exit status is known
  lost,     ///< the shim was killed: no process of it runs, and nobody knows how it ended
};

struct AttemptStatus {
  AttemptState state = AttemptState::absent;
  int exit_code = 0;            ///< when ended: of the first process
  int signal = 0;               ///< when ended: the signal that killed it, or 0
  std::optional<DiskUse> disk;  ///< when ended: of all its processes
  std::optional<ProcessId> process;
};

/// What an attempt's folder says. Safe to call at any time, after any crash of the caller.
AttemptStatus inspect_attempt(const std::string& attempt_folder);

/// Sends a signal to the job's process group if it still is that process. False when it is gone.
bool signal_attempt(const std::string& attempt_folder, int signal);

}  // namespace dais::jobs
