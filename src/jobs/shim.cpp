#include "jobs/shim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <ctime>
#include <string_view>

#include "base/error.h"
#include "base/span.h"
#include "jobs/descriptor.h"

namespace dais::jobs {
namespace {

// The folder of an attempt: `lock` is held by the shim; `process` names the job's process; `status`
// is blank until the end and has room for its text from the start.

Descriptor open_file(const std::string& path, int flags) {
  return Descriptor(open(path.c_str(), flags | O_CLOEXEC, 0600));
}

std::string read_small(const std::string& path) {
  const Descriptor file = open_file(path, O_RDONLY);
  std::array<char, 4096> buffer;
  const ssize_t size = file.get() >= 0 ? read(file.get(), buffer.data(), buffer.size()) : -1;
  return size > 0 ? std::string(buffer.data(), static_cast<size_t>(size)) : std::string();
}

// Not flushed: it is for those who come after a killed daemon, not after a loss of power, which
// ends the attempt as well.
bool write_whole(int fd, std::string_view text) {
  return write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

template <typename Number>
bool parse(std::string_view& text, Number& value) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(result.ptr - text.data()));
  return true;
}

std::string boot_id() {
  std::string id = read_small("/proc/sys/kernel/random/boot_id");
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

std::optional<ProcessId> read_process(const std::string& folder) {
  const std::string text = read_small(folder + "/process");
  std::string_view rest = text;
  ProcessId process;
  if (!parse(rest, process.pid) || !parse(rest, process.start_ticks)) return std::nullopt;
  if (rest.size() < 2 || rest.front() != ' ' || rest.back() != '\n') return std::nullopt;
  process.boot_id = rest.substr(1, rest.size() - 2);
  return process;
}

void check_launch(const Launch& launch) {
  if (launch.command.empty() || launch.command[0].empty() || launch.command[0][0] != '/') {
    throw Error(Code::invalid_argument, "the command does not name a program by its full path",
                launch.command.empty() ? "" : launch.command[0], "Resolve the program first");
  }
}

[[noreturn]] void refuse(int error, const std::string& where) {
  const Code code = error == ENOENT                      ? Code::not_found
                    : error == ENOSPC || error == EAGAIN ? Code::exhausted
                                                         : Code::unavailable;
  throw Error(code, std::string("the attempt could not be started: ") + std::strerror(error), where,
              "Check the program, its folder and the limits of the machine");
}

}  // namespace

namespace {

// A number of /proc/PID/stat, counted from the name, which stands in parentheses and may hold
// anything.
std::optional<uint64_t> stat_number(pid_t pid, int field) {
  const std::string stat = read_small("/proc/" + std::to_string(pid) + "/stat");
  size_t at = stat.rfind(')');
  for (int i = 0; i < field && at != std::string::npos; ++i) at = stat.find(' ', at + 1);
  if (at == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(stat).substr(at + 1);
  uint64_t value = 0;
  if (!parse(rest, value)) return std::nullopt;
  return value;
}

}  // namespace

std::optional<ProcessId> identify(pid_t pid) {
  const auto start_ticks = stat_number(pid, 20);
  if (!start_ticks) return std::nullopt;
  return ProcessId{pid, boot_id(), *start_ticks};
}

double age_s(const ProcessId& process) {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 -
         static_cast<double>(process.start_ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

pid_t parent_of(pid_t pid) { return static_cast<pid_t>(stat_number(pid, 2).value_or(0)); }

std::optional<DiskUse> disk_use(pid_t pid) {
  const std::string text = read_small("/proc/" + std::to_string(pid) + "/io");
  const auto number = [&text](const char* name) -> std::optional<int64_t> {
    const size_t at = text.find(name);
    if (at == std::string::npos) return std::nullopt;
    std::string_view rest = std::string_view(text).substr(at + std::strlen(name));
    int64_t value = 0;
    return parse(rest, value) ? std::optional(value) : std::nullopt;
  };
  const auto read = number("\nread_bytes: "), written = number("\nwrite_bytes: ");
  if (!read || !written) return std::nullopt;
  return DiskUse{*read, *written};
}

ProcessId start_attempt(const std::string& attempt_folder, const Launch& launch) {
  return start_attempt(attempt_folder, launch, Standby(launch.groups));
}

ProcessId start_attempt(const std::string& attempt_folder, const Launch& launch,
                        const Standby& standby) {
  check_launch(launch);
  std::optional<Span> span(std::in_place, "job", "files");
  if (mkdir(attempt_folder.c_str(), 0700) != 0) refuse(errno, attempt_folder);
  const Descriptor lock = open_file(attempt_folder + "/lock", O_RDWR | O_CREAT | O_EXCL);
  const Descriptor status = open_file(attempt_folder + "/status", O_RDWR | O_CREAT | O_EXCL);
  const Descriptor process = open_file(attempt_folder + "/process", O_WRONLY | O_CREAT | O_EXCL);
  const Descriptor log = open_file(launch.log, O_WRONLY | O_CREAT | O_APPEND);
  const Descriptor orders(memfd_create("launch", MFD_CLOEXEC));
  if (lock.get() < 0 || status.get() < 0 || process.get() < 0 || log.get() < 0 ||
      orders.get() < 0) {
    refuse(errno, attempt_folder);
  }
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) refuse(errno, attempt_folder);
  std::string blank(status_bytes - 1, ' ');
  if (!write_whole(status.get(), blank + "\n")) refuse(ENOSPC, attempt_folder);
  // So that the job can open its own output again (/dev/stdout).
  if (launch.user && fchown(log.get(), launch.user->user, launch.user->group) != 0) {
    refuse(errno, launch.log);
  }
  if (!write_whole(orders.get(), launch_text(launch.folder, launch.tmp, launch.user, launch.command,
                                             launch.environment))) {
    refuse(ENOSPC, attempt_folder);
  }
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) refuse(errno, attempt_folder);
  span.emplace("job", "execute");
  const bool sent =
      standby.run({lock.get(), status.get(), process.get(), log.get(), orders.get(), ready[1]});
  close(ready[1]);
  int error = EAGAIN;
  const ssize_t told = sent ? read(ready[0], &error, sizeof error) : 0;
  close(ready[0]);
  if (told != sizeof error) error = EAGAIN;
  if (error != 0) refuse(error, launch.command[0]);
  const auto started = read_process(attempt_folder);
  if (!started) refuse(EIO, attempt_folder);
  return *started;
}

AttemptStatus inspect_attempt(const std::string& attempt_folder) {
  AttemptStatus result;
  const Descriptor lock = open_file(attempt_folder + "/lock", O_RDWR);
  if (lock.get() < 0) return result;
  result.process = read_process(attempt_folder);
  if (flock(lock.get(), LOCK_SH | LOCK_NB) != 0) {
    result.state = AttemptState::running;
    return result;
  }
  const std::string text = read_small(attempt_folder + "/status");
  std::string_view rest = text;
  if (rest.substr(0, 5) == "ended") {
    rest.remove_prefix(5);
    if (parse(rest, result.exit_code) && parse(rest, result.signal)) {
      result.state = AttemptState::ended;
      DiskUse disk;
      if (parse(rest, disk.read_bytes) && parse(rest, disk.written_bytes)) result.disk = disk;
      return result;
    }
  }
  result.state = result.process ? AttemptState::lost : AttemptState::absent;
  return result;
}

bool signal_attempt(const std::string& attempt_folder, int signal) {
  const auto recorded = read_process(attempt_folder);
  if (!recorded || identify(recorded->pid) != recorded) return false;
  return kill(-recorded->pid, signal) == 0;
}

}  // namespace dais::jobs
