#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"

namespace dais {
namespace {

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

[[noreturn]] void cannot(const char* action, const std::filesystem::path& path) {
  const int reason = errno;
  const Code code = reason == ENOENT || reason == ENOTDIR  ? Code::not_found
                    : reason == ENOSPC || reason == ENOMEM ? Code::exhausted
                                                           : Code::unavailable;
  throw Error(code, std::string("cannot ") + action + ": " + std::strerror(reason), path.string());
}

/// Live mappings: first address and size.
struct Mappings {
  std::mutex mutex;
  std::map<uintptr_t, size_t> sizes;
};
Mappings& mappings() {
  static Mappings all;
  return all;
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.number < 0) cannot("open the file", path);
  struct stat status {};
  if (::fstat(file.number, &status) != 0) cannot("look at the file", path);
  if (!S_ISREG(status.st_mode)) throw Error(Code::not_found, "not a regular file", path.string());
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile(nullptr, 0));
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (data == MAP_FAILED) cannot("map the file", path);
  {
    const std::lock_guard lock(mappings().mutex);
    mappings().sizes.emplace(reinterpret_cast<uintptr_t>(data), size);
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<const uint8_t*>(data), size));
}

MappedFile::~MappedFile() {
  if (!data_) return;
  {
    const std::lock_guard lock(mappings().mutex);
    mappings().sizes.erase(reinterpret_cast<uintptr_t>(data_));
  }
  ::munmap(const_cast<uint8_t*>(data_), size_);
}

void MappedFile::release(const void* data, size_t size) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(data), end = begin + size;
  const std::lock_guard lock(mappings().mutex);
  auto found = mappings().sizes.upper_bound(begin);
  if (found == mappings().sizes.begin()) return;
  --found;
  if (end > found->first + found->second) return;
  const uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
  if (last > first) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  std::string name = path_.string() + ".XXXXXX";
  descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor_ < 0) fail("create");
  temporary_ = name;
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* action) const {
  const int reason = errno;
  throw Error(reason == ENOSPC || reason == EDQUOT ? Code::exhausted : Code::unavailable,
              std::string("cannot ") + action + " the file: " + std::strerror(reason),
              path_.string(), "Check that the folder exists, is writable and has space");
}

void AtomicFile::write(Bytes bytes) {
  position_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write");
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void AtomicFile::pad_to(size_t alignment) {
  static constexpr uint8_t zeros[4096] = {};
  size_t missing = (alignment - position_ % alignment) % alignment;
  while (missing > 0) {
    const size_t piece = std::min(missing, sizeof zeros);
    write({zeros, piece});
    missing -= piece;
  }
}

void AtomicFile::commit(bool durable) {
  // A temporary file is private to its owner; the result follows the umask like any other file.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(descriptor_, 0666 & ~mask) != 0) fail("set the mode of");
  if (durable && ::fsync(descriptor_) != 0) fail("flush");
  const int closing = std::exchange(descriptor_, -1);
  if (::close(closing) != 0) fail("close");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename");
  temporary_.clear();
  if (durable) sync_folder(path_.parent_path());
}

void sync_folder(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder.empty() ? "." : folder;
  const Descriptor opened{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (opened.number < 0) cannot("open the folder", path);
  // Some file systems have nothing to flush for a folder and say so by EINVAL.
  if (::fsync(opened.number) != 0 && errno != EINVAL) cannot("flush the folder", path);
}

void write_file(const std::filesystem::path& path, std::string_view contents) {
  AtomicFile file(path);
  file.write({reinterpret_cast<const uint8_t*>(contents.data()), contents.size()});
  file.commit();
}

std::filesystem::path confined_path(const std::filesystem::path& folder,
                                    std::string_view relative) {
  const auto refuse = [&](const char* reason) {
    throw Error(Code::invalid_model, "file name '" + std::string(relative) + "' " + reason,
                folder.string(), "Only files inside this folder may be named");
  };
  const std::filesystem::path asked(relative);
  if (relative.empty()) refuse("is empty");
  if (relative.find('\0') != std::string_view::npos) refuse("holds a zero byte");
  if (asked.is_absolute()) refuse("is absolute");
  if (std::find(asked.begin(), asked.end(), "..") != asked.end()) refuse("leaves the folder");
  std::error_code problem;
  const auto base = std::filesystem::weakly_canonical(folder.empty() ? "." : folder, problem);
  if (problem) refuse("cannot be resolved");
  const auto real = std::filesystem::weakly_canonical(base / asked, problem);
  if (problem) refuse("cannot be resolved");
  const auto [end, rest] = std::mismatch(base.begin(), base.end(), real.begin(), real.end());
  if (end != base.end()) refuse("leaves the folder by a symbolic link");
  return real;
}

}  // namespace dais
