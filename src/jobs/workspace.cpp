#include "jobs/workspace.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "jobs/descriptor.h"

namespace dais::jobs {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& action, const fs::path& path) {
  const int error = errno;
  throw Error(error == ENOENT   ? Code::not_found
              : error == ENOSPC ? Code::exhausted
                                : Code::unavailable,
              "cannot " + action + ": " + std::strerror(error), path.string(),
              "Check the folder, its rights and the free space");
}

class Copy {
 public:
  explicit Copy(const CopyLimits& limits) : left_(limits) {}

  void folder(const fs::path& from, const fs::path& to, int depth);

 private:
  void entry(const fs::directory_entry& item, const fs::path& to, int depth);
  void file(const fs::path& from, const fs::path& to);

  CopyLimits left_;
};

void Copy::file(const fs::path& from, const fs::path& to) {
  const Descriptor source(open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status {};
  if (source.get() < 0 || fstat(source.get(), &status) != 0) fail("read", from);
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size > left_.bytes) {
    throw Error(Code::exhausted, "the working folder is larger than what is copied for a job",
                from.string(), "Leave data out of it, or submit without snapshot");
  }
  left_.bytes -= size;
  const Descriptor target(
      open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, status.st_mode & 0777));
  if (target.get() < 0) fail("make", to);
  copy_bytes(source.get(), target.get(), from);
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
    throw Error(Code::invalid_argument, "the working folder holds a socket, pipe or device",
                item.path().string(), "Remove it, or submit without snapshot");
  }
}

void Copy::folder(const fs::path& from, const fs::path& to, int depth) {
  if (depth > left_.depth) {
    throw Error(Code::exhausted, "the working folder is nested too deeply", from.string());
  }
  struct stat status {};
  if (stat(from.c_str(), &status) != 0) fail("read", from);
  if (mkdir(to.c_str(), (status.st_mode & 0777) | 0700) != 0) fail("make", to);
  for (const fs::directory_entry& item : fs::directory_iterator(from)) entry(item, to, depth);
}

}  // namespace

void copy_bytes(int source, int target, const fs::path& from) {
  if (ioctl(target, FICLONE, source) == 0) return;
  while (true) {
    const ssize_t copied = copy_file_range(source, nullptr, target, nullptr, 1 << 30, 0);
    if (copied == 0) return;
    if (copied < 0) break;
  }
  // Older kernels cannot copy between file systems: through memory then.
  char buffer[64 << 10];
  for (ssize_t got; (got = read(source, buffer, sizeof buffer)) != 0;) {
    if (got < 0) fail("read", from);
    if (write(target, buffer, static_cast<size_t>(got)) != got) fail("write the copy of", from);
  }
}

void copy_folder(const fs::path& from, const fs::path& to, const CopyLimits& limits) {
  if (fs::exists(fs::symlink_status(to))) {
    errno = EEXIST;
    fail("make", to);
  }
  try {
    Copy(limits).folder(from, to, 0);
  } catch (const fs::filesystem_error& problem) {
    std::error_code ignored;
    fs::remove_all(to, ignored);
    throw Error(Code::unavailable, "cannot copy: " + problem.code().message(),
                problem.path1().string(), "Check its rights");
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(to, ignored);
    throw;
  }
}

}  // namespace dais::jobs
