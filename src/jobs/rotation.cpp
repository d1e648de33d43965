#include "jobs/rotation.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>

namespace dais::jobs {
namespace {

namespace fs = std::filesystem;

// Copies the end of a file; false when something was in the way, such as a full disk.
bool copy_end(const fs::path& from, const fs::path& to, int64_t most) {
  const int source = open(from.c_str(), O_RDONLY | O_CLOEXEC);
  const int target = open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool copied = source >= 0 && target >= 0;
  if (copied) {
    const off_t size = lseek(source, 0, SEEK_END);
    off_t at = std::max<off_t>(0, size - most);
    while (copied && at < size) {
      copied = sendfile(target, source, &at, static_cast<size_t>(size - at)) > 0;
    }
  }
  if (source >= 0) close(source);
  if (target >= 0) close(target);
  return copied;
}

}  // namespace

int64_t log_bytes(const fs::path& log) {
  std::error_code error;
  const auto size = fs::file_size(log, error);
  return error ? 0 : static_cast<int64_t>(size);
}

// Where the disk is full the older part is given up: a log that grows on would fill it further.
void rotate(const fs::path& log, int64_t limit) {
  const fs::path old = log.string() + ".old";
  std::error_code ignored;
  if (!copy_end(log, old, limit)) fs::remove(old, ignored);
  fs::resize_file(log, 0, ignored);
}

void trim(const fs::path& log, int64_t limit) {
  const fs::path end = log.string() + ".end";
  std::error_code ignored;
  if (copy_end(log, end, limit)) {
    fs::rename(end, log, ignored);
  } else {
    fs::remove(end, ignored);
    fs::resize_file(log, 0, ignored);
  }
}

}  // namespace dais::jobs
