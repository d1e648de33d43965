// Everything between the two forks of an attempt runs in a copy of a program that may have threads:
// no locks of ours there. (The C library makes allocation safe after a fork.)
#include "jobs/standby.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "jobs/shim.h"

namespace dais::jobs {
namespace {

constexpr size_t most_descriptors = 6;
constexpr off_t most_launch_bytes = 1 << 20;

// One byte that carries descriptors.
bool send_descriptors(int socket, const int* descriptors, size_t count) {
  char byte = 'g';
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(most_descriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(count * sizeof(int));
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(count * sizeof(int));
  std::memcpy(CMSG_DATA(header), descriptors, count * sizeof(int));
  return sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

// False when the other side is gone. What is received closes when a program is executed.
bool receive_descriptors(int socket, int* descriptors, size_t count) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(most_descriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (got != 1 || !header || header->cmsg_len != CMSG_LEN(count * sizeof(int))) return false;
  std::memcpy(descriptors, CMSG_DATA(header), count * sizeof(int));
  return true;
}

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
  int length = std::snprintf(text, sizeof text - 1, "ended %d %d", code, signal);
  // Every process of the job was waited for, by its parent or here.
  if (const auto disk = disk_use(getpid())) {
    length += std::snprintf(text + length, sizeof text - 1 - static_cast<size_t>(length),
                            " %lld %lld", static_cast<long long>(disk->read_bytes),
                            static_cast<long long>(disk->written_bytes));
  }
  text[length] = ' ';
  text[sizeof text - 1] = '\n';
  if (pwrite(status_file, text, sizeof text, 0) == sizeof text) fdatasync(status_file);
}

struct Orders {
  std::string text;
  const char *folder = nullptr, *tmp = nullptr;
  std::optional<Account> user;
  std::vector<char*> arguments, environment;
};

// Reads what launch_text() wrote; false when it is anything else.
bool read_orders(int file, Orders& orders) {
  struct stat about {};
  if (fstat(file, &about) != 0 || about.st_size <= 0 || about.st_size > most_launch_bytes) {
    return false;
  }
  orders.text.resize(static_cast<size_t>(about.st_size));
  const ssize_t size = pread(file, orders.text.data(), orders.text.size(), 0);
  if (size != about.st_size || orders.text.back() != '\0') return false;
  std::vector<char*> words;
  for (size_t at = 0; at < orders.text.size(); at += std::strlen(&orders.text[at]) + 1) {
    words.push_back(&orders.text[at]);
  }
  constexpr size_t fixed = 4;
  if (words.size() <= fixed) return false;
  orders.folder = words[0];
  orders.tmp = words[1];
  orders.user = account_from_text(words[2]);
  if (*words[2] && !orders.user) return false;
  const size_t arguments = std::strtoul(words[3], nullptr, 10);
  if (arguments == 0 || arguments > words.size() - fixed) return false;
  const auto middle = words.begin() + static_cast<ptrdiff_t>(fixed + arguments);
  orders.arguments.assign(words.begin() + fixed, middle);
  orders.environment.assign(middle, words.end());
  orders.arguments.push_back(nullptr);
  orders.environment.push_back(nullptr);
  return true;
}

int join(const std::vector<int>& groups) {
  for (const int group : groups) {
    if (group < 0) return ENOENT;
    if (write(group, "0", 1) != 1) return errno;
    close(group);
  }
  return 0;
}

// Executes the program, or returns the error number.
int execute(int lock, int log, int launch) {
  Orders orders;
  if (!read_orders(launch, orders)) return EINVAL;
  // Whoever inherits the lock keeps the attempt from being taken for over, should the shim die.
  if (fcntl(lock, F_SETFD, 0) != 0) return errno;
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (*orders.tmp && !hide_tmp(orders.tmp)) return errno;
  if (orders.user && !become(*orders.user)) return errno;
  if (null < 0 || chdir(orders.folder) != 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 ||
      dup2(log, 2) < 0) {
    return errno;
  }
  execve(orders.arguments[0], orders.arguments.data(), orders.environment.data());
  return errno;
}

[[noreturn]] void be_job(int link, int failed, const std::vector<int>& groups) {
  setpgid(0, 0);
  // A job is not run at the daemon's real-time priority: control groups would not take it in.
  const sched_param usual{};
  sched_setscheduler(0, SCHED_OTHER, &usual);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGTERM, SIGHUP, SIGPIPE}) signal(number, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int error = join(groups);
  if (write(link, &error, sizeof error) != sizeof error) _exit(127);
  std::array<int, 3> files;  // lock, log, launch
  // The shim hangs up when there will be no attempt, or none that it could record.
  if (!receive_descriptors(link, files.data(), files.size())) _exit(127);
  error = execute(files[0], files[1], files[2]);
  if (write(failed, &error, sizeof error) < 0) _exit(126);
  _exit(127);
}

bool record(int file, pid_t pid) {
  const auto process = identify(pid);
  if (!process) return false;
  const std::string text = std::to_string(process->pid) + " " +
                           std::to_string(process->start_ticks) + " " + process->boot_id + "\n";
  return write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Closes everything else: an inherited descriptor would keep files and sockets of the daemon alive.
void keep_only(int socket, const std::vector<int>& groups) {
  std::vector<int> kept = groups;
  kept.push_back(socket);
  std::ranges::sort(kept);
  unsigned from = 0;
  for (const int fd : kept) {
    if (fd < 0) continue;
    const auto here = static_cast<unsigned>(fd);
    if (here > from) close_range(from, here - 1, 0);
    from = here + 1;
  }
  close_range(from, ~0U, 0);
  for (int fd = 0; fd < 3; ++fd) {
    if (std::ranges::count(kept, fd) == 0 && open("/dev/null", O_RDWR) < 0) return;
  }
}

struct Bond {
  int link;    // to the job's process
  int failed;  // closes when the program is executed, or tells why it is not
  pid_t job;
};

// Starts the job in the attempt that was handed over; an error number, or 0.
int begin(const Bond& bond, const std::array<int, most_descriptors>& files) {
  int error = 0;
  if (read(bond.link, &error, sizeof error) != sizeof error) return ESRCH;
  if (error != 0) return error;
  // A full disk is said as such: the job is tried again then.
  errno = EIO;
  if (!record(files[2], bond.job)) return errno == ENOSPC ? ENOSPC : EIO;
  const std::array<int, 3> handed = {files[0], files[3], files[4]};
  if (!send_descriptors(bond.link, handed.data(), handed.size())) return ESRCH;
  if (read(bond.failed, &error, sizeof error) == sizeof error) return error;
  return 0;
}

[[noreturn]] void be_shim(int socket, const std::vector<int>& groups) {
  setsid();
  keep_only(socket, groups);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  signal(SIGTERM, forward);
  for (const int number : {SIGHUP, SIGPIPE}) signal(number, SIG_IGN);
  int link[2], failed[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) != 0) _exit(1);
  if (pipe2(failed, O_CLOEXEC) != 0) _exit(1);
  const pid_t job = fork();
  if (job < 0) _exit(1);
  if (job == 0) {
    close(socket);
    close(link[0]);
    be_job(link[1], failed[1], groups);
  }
  setpgid(job, job);
  job_group = job;
  for (const int group : groups) close(group);
  close(link[1]);
  close(failed[1]);
  std::array<int, most_descriptors> files;  // as in AttemptFiles
  if (!receive_descriptors(socket, files.data(), files.size())) {
    kill(job, SIGKILL);
    _exit(0);
  }
  close(socket);
  const int error = begin({link[0], failed[0], job}, files);
  if (error != 0) {
    close(link[0]);
    kill(job, SIGKILL);
    waitpid(job, nullptr, 0);  // it holds the lock until it is gone
    close(files[0]);           // told first, the caller could still find the attempt running
    if (write(files[5], &error, sizeof error) < 0) _exit(2);
    _exit(1);
  }
  // Whether or not the daemon is still there to hear it: the next one finds the lock held.
  [[maybe_unused]] const ssize_t told = write(files[5], &error, sizeof error);
  close(files[5]);
  int status = 0;
  pid_t ended = 0;
  do {
    ended = waitpid(-1, &status, 0);
  } while (ended != job && (ended > 0 || errno == EINTR));
  kill_rest();
  write_status(files[1], status);
  _exit(0);
}

}  // namespace

Standby::Standby(const std::vector<std::string>& groups) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    throw Error(Code::exhausted, "no descriptor is left to start a job");
  }
  // Opened here: a group may have been renamed before the process gets to join it.
  std::vector<int> procs;
  for (const std::string& group : groups) {
    procs.push_back(open(group.c_str(), O_WRONLY | O_CLOEXEC));
  }
  // The shim is a grandchild, so that the caller need not wait for it.
  const pid_t between = fork();
  if (between == 0) {
    const pid_t shim = fork();
    if (shim == 0) be_shim(pair[1], procs);
    _exit(shim < 0 ? 1 : 0);
  }
  close(pair[1]);
  for (const int group : procs) {
    if (group >= 0) close(group);
  }
  socket_ = pair[0];
  int status = 0;
  if (between > 0) waitpid(between, &status, 0);
  if (between > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  close(socket_);
  throw Error(Code::exhausted, "the system starts no further processes", {},
              "Check the limits of the machine");
}

Standby::~Standby() {
  if (socket_ >= 0) close(socket_);
}

bool Standby::run(const AttemptFiles& files) const {
  const std::array<int, most_descriptors> all = {files.lock, files.status, files.process,
                                                 files.log,  files.launch, files.ready};
  return send_descriptors(socket_, all.data(), all.size());
}

bool hide_tmp(const char* folder) {
  // What is mounted later outside shows inside, never the other way round. The folder may lie in
  // the /tmp that it covers: from then on it has only the new name.
  return unshare(CLONE_NEWNS) == 0 &&
         mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0 &&
         mount(folder, "/tmp", nullptr, MS_BIND, nullptr) == 0 &&
         (access("/var/tmp", F_OK) != 0 ||
          mount("/tmp", "/var/tmp", nullptr, MS_BIND, nullptr) == 0);
}

std::string launch_text(const std::string& folder, const std::string& tmp,
                        const std::optional<Account>& user, const std::vector<std::string>& command,
                        const std::vector<std::string>& environment) {
  std::string text;
  const auto add = [&text](const std::string& word) { text.append(word.c_str(), word.size() + 1); };
  add(folder);
  add(tmp);
  add(account_text(user));
  add(std::to_string(command.size()));
  for (const std::string& word : command) add(word);
  for (const std::string& variable : environment) add(variable);
  return text;
}

}  // namespace dais::jobs
