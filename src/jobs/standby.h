#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/account.h"

namespace dais::jobs {

/// What a shim needs of an attempt, as open descriptors that it gets copies of.
struct AttemptFiles {
  int lock = -1, status = -1, process = -1, log = -1;
  int launch = -1;  ///< what to run, as launch_text() writes it
  int ready = -1;   ///< the shim tells here: 0 once the program is executed, else an error number
};

/// A shim and the process that will become a job, forked ahead of time: to join a control group of
/// version 1 takes 6 to 10 ms, which the process has behind it when the job comes. Used once; one
/// that is destroyed unused ends by itself, as it does when the program that made it dies.
class Standby {
 public:
  /// Forks both; the process joins `groups` (cgroup.procs files) on its own time.
  /// Throws unavailable when the system refuses.
  explicit Standby(const std::vector<std::string>& groups);
  ~Standby();
  Standby(Standby&& other) noexcept : socket_(other.socket_) { other.socket_ = -1; }
  Standby& operator=(Standby&&) = delete;

  /// Hands the attempt over. False when the shim is gone; then nothing was executed.
  bool run(const AttemptFiles& files) const;

 private:
  int socket_ = -1;
};

/// `folder`, `tmp` (empty: that of all), who runs it (nobody: the caller), then the words of the
/// command and the variables.
std::string launch_text(const std::string& folder, const std::string& tmp,
                        const std::optional<Account>& user, const std::vector<std::string>& command,
                        const std::vector<std::string>& environment);

/// Gives the calling process its own view of the file system, in which `folder` is /tmp and
/// /var/tmp. False where the system refuses.
bool hide_tmp(const char* folder);

/// Room for the text of the exit status is taken before the start.
inline constexpr size_t status_bytes = 64;

}  // namespace dais::jobs
