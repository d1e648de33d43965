#include "jobs/workspace.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "jobs/descriptor.h"

namespace dais::jobs {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds copy_limit(20);

[[noreturn]] void fail(const std::string& action, const fs::path& path) {
  const int error = errno;
  throw Error(error == ENOENT   ? Code::not_found
              : error == ENOSPC ? Code::exhausted
                                : Code::unavailable,
              "cannot " + action + ": " + std::strerror(error), path.string(),
              "Check the folder, its rights and the free space");
}

[[noreturn]] void special(const fs::path& path) {
  throw Error(Code::invalid_argument, "the working folder holds a socket, pipe or device",
              path.string(), "Remove it, or submit without snapshot");
}

class Copy {
 public:
  explicit Copy(const CopyLimits& limits) : left_(limits) {}

  void contents(const fs::path& from, const fs::path& to, int depth);

 private:
  void folder(const fs::path& from, const fs::path& to, int depth);
  void entry(const fs::directory_entry& item, const fs::path& to, int depth);
  void file(const fs::path& from, const fs::path& to);
  void take(uint64_t bytes, const fs::path& from);

  CopyLimits left_;
};

void Copy::file(const fs::path& from, const fs::path& to) {
  // Not to wait for somebody who writes into a pipe that took the file's place.
  const Descriptor source(open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (source.get() < 0 || fstat(source.get(), &status) != 0) fail("read", from);
  if (!S_ISREG(status.st_mode)) special(from);
  take(static_cast<uint64_t>(status.st_size), from);
  const Descriptor target(
      open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, status.st_mode & 0777));
  if (target.get() < 0) fail("make", to);
  copy_bytes(source.get(), target.get(), static_cast<uint64_t>(status.st_size) + left_.bytes, from);
  // It may have grown meanwhile.
  const auto counted = status.st_size;
  if (fstat(target.get(), &status) != 0) fail("read", to);
  if (status.st_size > counted) take(static_cast<uint64_t>(status.st_size - counted), from);
}

void Copy::take(uint64_t bytes, const fs::path& from) {
  if (bytes > left_.bytes) {
    throw Error(Code::exhausted, "the working folder is larger than what is copied for a job",
                from.string(), "Leave data out of it, or submit without snapshot");
  }
  left_.bytes -= bytes;
}

void Copy::entry(const fs::directory_entry& item, const fs::path& to, int depth) {
  if (left_.files == 0) {
    throw Error(Code::exhausted, "the working folder holds more files than are copied for a job",
                item.path().string(), "Leave data out of it, or submit without snapshot");
  }
  --left_.files;
  const fs::file_status status = item.symlink_status();
  const fs::path target = to / item.path().filename();
  if (fs::is_symlink(status)) {
    fs::copy_symlink(item.path(), target);
  } else if (fs::is_directory(status)) {
    folder(item.path(), target, depth + 1);
  } else if (fs::is_regular_file(status)) {
    file(item.path(), target);
  } else {
    special(item.path());
  }
}

void Copy::folder(const fs::path& from, const fs::path& to, int depth) {
  struct stat status {};
  if (stat(from.c_str(), &status) != 0) fail("read", from);
  if (mkdir(to.c_str(), (status.st_mode & 0777) | 0700) != 0) fail("make", to);
  contents(from, to, depth);
}

void Copy::contents(const fs::path& from, const fs::path& to, int depth) {
  if (depth > left_.depth) {
    throw Error(Code::exhausted, "the working folder is nested too deeply", from.string());
  }
  for (const fs::directory_entry& item : fs::directory_iterator(from)) entry(item, to, depth);
}

void copy_contents(const fs::path& from, const fs::path& to, const CopyLimits& limits) {
  try {
    struct stat status {};
    if (stat(from.c_str(), &status) != 0) fail("read", from);
    Copy(limits).contents(from, to, 0);
  } catch (const fs::filesystem_error& problem) {
    throw Error(Code::unavailable, "cannot copy: " + problem.code().message(),
                problem.path1().string(), "Check its rights");
  }
}

// What went wrong in another process: the parts of an error, with a zero between them.
std::string error_text(const Error& error) {
  std::string out = std::to_string(static_cast<int>(error.code()));
  for (const std::string& part : {error.problem(), error.where(), error.remedy()}) {
    out += '\0' + part;
  }
  return out;
}

[[noreturn]] void raise(const std::string& text, const fs::path& from) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\0', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  if (parts.size() != 4) {
    throw Error(Code::unavailable, "the process that copied the working folder died", from.string(),
                "Check the memory and the limits of the machine");
  }
  throw Error(static_cast<Code>(std::atoi(parts[0].c_str())), parts[1], parts[2], parts[3]);
}

// In a process of its own, for good the owner's. It stands in the folder that it fills: he need not
// be able to reach it.
[[noreturn]] void be_copier(int told, const Account& owner, const fs::path& from,
                            const fs::path& to, const CopyLimits& limits) {
  std::string text;
  close_range(3, static_cast<unsigned>(told) - 1, 0);
  close_range(static_cast<unsigned>(told) + 1, ~0U, 0);
  try {
    // Files that grow while they are copied have an end, too.
    const rlimit most{limits.bytes, limits.bytes};
    signal(SIGXFSZ, SIG_IGN);
    if (chdir(to.c_str()) != 0 || setrlimit(RLIMIT_FSIZE, &most) != 0 || !become(owner)) {
      fail("become the user", from);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // not before: another user's process loses it
    copy_contents(from, ".", limits);
  } catch (const Error& error) {
    text = error_text(error);
  } catch (const std::exception&) {
    text = "?";
  }
  _exit(write(told, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
}

// Reads until the other side closes; false when that takes longer.
bool read_within(int file, std::chrono::seconds limit, std::string& text) {
  const auto end = std::chrono::steady_clock::now() + limit;
  char buffer[4096];
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd ready{file, POLLIN, 0};
    if (left.count() <= 0) return false;
    if (poll(&ready, 1, static_cast<int>(left.count())) <= 0) continue;  // late, or a signal came
    const ssize_t got = read(file, buffer, sizeof buffer);
    if (got <= 0) return true;
    text.append(buffer, static_cast<size_t>(got));
  }
}

void copy_as(const Account& owner, const fs::path& from, const fs::path& to,
             const CopyLimits& limits) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("copy", from);
  const Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  const pid_t child = fork();
  if (child < 0) fail("copy", from);
  if (child == 0) be_copier(ends[1], owner, from, to, limits);
  write_end = Descriptor();
  std::string text;
  const bool answered = read_within(read_end.get(), copy_limit, text);
  // The owner may have stopped it.
  if (!answered) kill(child, SIGKILL);
  int status = 1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!answered) {
    throw Error(Code::exhausted, "the working folder was not copied in time", from.string(),
                "Leave data out of it, or submit without snapshot");
  }
  if (status != 0 || !text.empty()) raise(text, from);
}

}  // namespace

void copy_bytes(int source, int target, uint64_t most, const fs::path& from) {
  if (ioctl(target, FICLONE, source) == 0) return;
  constexpr size_t kPiece = size_t{1} << 20;
  uint64_t done = 0;
  while (done <= most) {
    const ssize_t copied = copy_file_range(source, nullptr, target, nullptr, kPiece, 0);
    // Some files that are made while they are read give nothing this way, though they hold much.
    if (copied <= 0) break;
    done += static_cast<uint64_t>(copied);
  }
  // Older kernels cannot copy between file systems: through memory then.
  std::array<char, 64 << 10> buffer;
  while (done <= most) {
    const ssize_t got = read(source, buffer.data(), buffer.size());
    if (got == 0) return;
    if (got < 0) fail("read", from);
    for (ssize_t at = 0; at < got;) {
      const ssize_t put = write(target, buffer.data() + at, static_cast<size_t>(got - at));
      if (put < 0) fail("write the copy of", from);
      at += put;
    }
    done += static_cast<uint64_t>(got);
  }
}

void copy_folder(const fs::path& from, const fs::path& to, const CopyLimits& limits,
                 const std::optional<Account>& owner) {
  if (mkdir(to.c_str(), 0700) != 0) fail("make", to);
  try {
    if (!owner) {
      copy_contents(from, to, limits);
    } else {
      if (chown(to.c_str(), owner->user, owner->group) != 0) fail("give away", to);
      copy_as(*owner, from, to, limits);
    }
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(to, ignored);
    throw;
  }
}

}  // namespace dais::jobs
