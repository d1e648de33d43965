#include "jobs/shim.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/error.h"

namespace dais::jobs {
namespace {

// The folder of an attempt: `lock` is held by the shim; `process` names the job's process; `status`
// is blank until the end and has room for its text from the start.
constexpr size_t status_bytes = 64;

class File {
 public:
  File(const std::string& path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int fd() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_;
};

std::string read_small(const std::string& path) {
  const File file(path, O_RDONLY);
  std::array<char, 4096> buffer;
  const ssize_t size = file.valid() ? read(file.fd(), buffer.data(), buffer.size()) : -1;
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

// ---- Inside the shim, after a fork of a program that may have threads: no locks of ours. (The C
// library makes allocation safe after a fork.)

volatile sig_atomic_t job_group = 0;

void forward(int signal) {
  if (job_group > 0) kill(-job_group, signal);
}

// Kills every child, and the children that this hands to the shim, until none is left. Children are
// read from the kernel's own list, so that a process which left the group is found too.
void kill_rest() {
  kill(-job_group, SIGKILL);
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/children", static_cast<int>(getpid()));
  while (true) {
    std::array<char, 4096> buffer;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t size = fd < 0 ? -1 : read(fd, buffer.data(), buffer.size());
    if (fd >= 0) close(fd);
    pid_t pid = 0;
    for (ssize_t i = 0; i < size; ++i) {
      if (buffer[static_cast<size_t>(i)] >= '0' && buffer[static_cast<size_t>(i)] <= '9') {
        pid = pid * 10 + (buffer[static_cast<size_t>(i)] - '0');
      } else {
        if (pid > 0) kill(pid, SIGKILL);
        pid = 0;
      }
    }
    if (waitpid(-1, nullptr, 0) < 0 && errno == ECHILD) return;
  }
}

void write_status(int status_file, int status) {
  char text[status_bytes];
  std::memset(text, ' ', sizeof text);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  const int length = std::snprintf(text, sizeof text - 1, "ended %d %d", code, signal);
  text[length] = ' ';
  text[sizeof text - 1] = '\n';
  if (pwrite(status_file, text, sizeof text, 0) == sizeof text) fdatasync(status_file);
}

struct Prepared {
  std::vector<char*> arguments, environment, groups;
  const char* folder;
  int lock, status, process, log;
  uid_t user;  // -1: stay as we are
  gid_t group;
  int ready[2];  // the shim tells the caller: 0 for success, else an error number
};

// False with errno set when the process could not enter its groups or become its user.
bool enter_bounds(const Prepared& prepared) {
  for (char* procs : prepared.groups) {
    if (procs == nullptr) break;
    const int fd = open(procs, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1) return false;
    close(fd);
  }
  if (prepared.user == static_cast<uid_t>(-1)) return true;
  return setgroups(0, nullptr) == 0 && setgid(prepared.group) == 0 && setuid(prepared.user) == 0;
}

[[noreturn]] void execute(const Prepared& prepared, int release, int failed) {
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGTERM, SIG_DFL);
  signal(SIGHUP, SIG_DFL);
  // Whoever inherits the lock keeps the attempt from being taken for over, should the shim die.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  fcntl(prepared.lock, F_SETFD, 0);
  char go = 0;
  // The shim closes the pipe without a byte when it could not record this process.
  if (read(release, &go, 1) != 1) _exit(127);
  int error = 0;
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (!enter_bounds(prepared) || chdir(prepared.folder) != 0 || null < 0 || dup2(null, 0) < 0 ||
      dup2(prepared.log, 1) < 0 || dup2(prepared.log, 2) < 0) {
    error = errno;
  } else {
    execve(prepared.arguments[0], prepared.arguments.data(), prepared.environment.data());
    error = errno;
  }
  if (write(failed, &error, sizeof error) < 0) _exit(126);
  _exit(127);
}

bool record(int file, pid_t pid) {
  const auto process = identify(pid);
  if (!process) return false;
  return write_whole(file, std::to_string(process->pid) + " " +
                               std::to_string(process->start_ticks) + " " + process->boot_id +
                               "\n");
}

// Closes everything but what the shim needs: an inherited descriptor would keep files and sockets
// of the daemon alive.
void close_others(const Prepared& prepared) {
  const int highest = static_cast<int>(sysconf(_SC_OPEN_MAX));
  for (int fd = 0; fd < std::min(highest, 4096); ++fd) {
    const bool keep = fd == prepared.lock || fd == prepared.status || fd == prepared.process ||
                      fd == prepared.log || fd == prepared.ready[1];
    if (!keep) close(fd);
  }
  for (int fd = 0; fd < 3; ++fd) {
    if (open("/dev/null", O_RDWR) < 0) return;
  }
}

[[noreturn]] void be_shim(const Prepared& prepared) {
  auto fail = [&prepared](int error) {
    close(prepared.lock);  // told first, the caller could still find the attempt running
    if (write(prepared.ready[1], &error, sizeof error) < 0) _exit(2);
    _exit(1);
  };
  setsid();
  close_others(prepared);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  signal(SIGTERM, forward);
  signal(SIGHUP, SIG_IGN);
  int release[2], failed[2];
  if (pipe2(release, O_CLOEXEC) != 0 || pipe2(failed, O_CLOEXEC) != 0) fail(errno);
  const pid_t job = fork();
  if (job < 0) fail(errno);
  if (job == 0) {
    close(release[1]);
    execute(prepared, release[0], failed[1]);
  }
  setpgid(job, job);
  job_group = job;
  close(release[0]);
  close(failed[1]);
  if (!record(prepared.process, job)) fail(EIO);
  if (write(release[1], "g", 1) != 1) fail(errno);
  close(release[1]);
  // The pipe closes when the program is executed, or tells why it is not.
  int error = 0;
  if (read(failed[0], &error, sizeof error) == sizeof error) {
    waitpid(job, nullptr, 0);  // it holds the lock until it is gone
    fail(error);
  }
  if (write(prepared.ready[1], &error, sizeof error) < 0) forward(SIGKILL);
  close(prepared.ready[1]);
  int status = 0;
  pid_t ended = 0;
  do {
    ended = waitpid(-1, &status, 0);
  } while (ended != job && (ended > 0 || errno == EINTR));
  kill_rest();
  write_status(prepared.status, status);
  _exit(0);
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& text : strings) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
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

std::optional<ProcessId> identify(pid_t pid) {
  const std::string stat = read_small("/proc/" + std::to_string(pid) + "/stat");
  // The name stands in parentheses and may hold anything; 20 fields lie between it and the time.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  size_t at = name_end;
  for (int field = 0; field < 20 && at != std::string::npos; ++field) at = stat.find(' ', at + 1);
  if (at == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(stat).substr(at + 1);
  ProcessId process{pid, boot_id(), 0};
  if (!parse(rest, process.start_ticks)) return std::nullopt;
  return process;
}

ProcessId start_attempt(const std::string& attempt_folder, const Launch& launch) {
  check_launch(launch);
  if (mkdir(attempt_folder.c_str(), 0700) != 0) refuse(errno, attempt_folder);
  const File lock(attempt_folder + "/lock", O_RDWR | O_CREAT | O_EXCL);
  const File status(attempt_folder + "/status", O_RDWR | O_CREAT | O_EXCL);
  const File process(attempt_folder + "/process", O_WRONLY | O_CREAT | O_EXCL);
  const File log(launch.log, O_WRONLY | O_CREAT | O_APPEND);
  if (!lock.valid() || !status.valid() || !process.valid() || !log.valid()) {
    refuse(errno, attempt_folder);
  }
  if (flock(lock.fd(), LOCK_EX | LOCK_NB) != 0) refuse(errno, attempt_folder);
  std::string blank(status_bytes - 1, ' ');
  if (!write_whole(status.fd(), blank + "\n")) refuse(ENOSPC, attempt_folder);
  Prepared prepared{pointers(launch.command),
                    pointers(launch.environment),
                    pointers(launch.groups),
                    launch.folder.c_str(),
                    lock.fd(),
                    status.fd(),
                    process.fd(),
                    log.fd(),
                    launch.user ? launch.user->first : static_cast<uid_t>(-1),
                    launch.user ? launch.user->second : static_cast<gid_t>(-1),
                    {-1, -1}};
  if (pipe2(prepared.ready, O_CLOEXEC) != 0) refuse(errno, attempt_folder);
  // The shim is a grandchild, so that the caller need not wait for it.
  const pid_t between = fork();
  if (between == 0) {
    const pid_t shim = fork();
    if (shim == 0) be_shim(prepared);
    _exit(shim < 0 ? 1 : 0);
  }
  close(prepared.ready[1]);
  if (between > 0) waitpid(between, nullptr, 0);
  int error = EAGAIN;
  const ssize_t told = read(prepared.ready[0], &error, sizeof error);
  close(prepared.ready[0]);
  if (told != sizeof error) error = EAGAIN;
  if (error != 0) refuse(error, launch.command[0]);
  const auto started = read_process(attempt_folder);
  if (!started) refuse(EIO, attempt_folder);
  return *started;
}

AttemptStatus inspect_attempt(const std::string& attempt_folder) {
  AttemptStatus result;
  const File lock(attempt_folder + "/lock", O_RDWR);
  if (!lock.valid()) return result;
  result.process = read_process(attempt_folder);
  if (flock(lock.fd(), LOCK_SH | LOCK_NB) != 0) {
    result.state = AttemptState::running;
    return result;
  }
  const std::string text = read_small(attempt_folder + "/status");
  std::string_view rest = text;
  if (rest.substr(0, 5) == "ended") {
    rest.remove_prefix(5);
    if (parse(rest, result.exit_code) && parse(rest, result.signal)) {
      result.state = AttemptState::ended;
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
