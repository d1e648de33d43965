#include "jobs/artefacts.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "jobs/descriptor.h"
#include "jobs/workspace.h"

namespace dais::jobs {
namespace {

namespace fs = std::filesystem;

constexpr size_t most_patterns = 100, most_pattern_bytes = 1024, most_left_out = 100;

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    if (end > at) out.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

[[noreturn]] void fail(const std::string& action, const fs::path& path) {
  const int error = errno;
  throw Error(error == ENOSPC || error == EDQUOT ? Code::exhausted : Code::unavailable,
              "cannot " + action + ": " + std::strerror(error), path.string());
}

// Names that can be shown and written down as they are.
bool plain(const std::string& name) {
  const bool control =
      std::ranges::any_of(name, [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; });
  if (control) return false;
  try {
    static_cast<void>(nlohmann::json(name).dump());
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

// How far each pattern has come on the way to a folder: the parts of it still to be met.
struct Place {
  const std::vector<std::string>* pattern;
  size_t at;
  bool operator==(const Place&) const = default;
  bool over() const { return at == pattern->size(); }
};
using Places = std::vector<Place>;

void add(Places& places, Place place) {
  if (std::ranges::find(places, place) != places.end()) return;
  places.push_back(place);
  // It may stand for no folder at all.
  if (!place.over() && (*place.pattern)[place.at] == "**") {
    add(places, {place.pattern, place.at + 1});
  }
}

Places beyond(const Places& places, const std::string& name) {
  Places out;
  for (const Place& place : places) {
    if (place.over()) {
      add(out, place);
      continue;
    }
    const std::string& part = (*place.pattern)[place.at];
    if (part == "**") {
      if (name[0] != '.') add(out, place);
    } else if (fnmatch(part.c_str(), name.c_str(), FNM_PERIOD) == 0) {
      add(out, {place.pattern, place.at + 1});
    }
  }
  return out;
}

// While it lives, this process opens files as somebody else.
class As {
 public:
  explicit As(const std::optional<Account>& reader) : active_(reader.has_value()) {
    if (!active_) return;
    if (setegid(reader->group) != 0 || seteuid(reader->user) != 0) fail("become the user", {});
  }
  ~As() {
    if (active_ && (seteuid(0) != 0 || setegid(0) != 0)) _exit(1);
  }
  As(const As&) = delete;

 private:
  bool active_;
};

class Copy {
 public:
  Copy(const ArtefactLimits& limits, const std::optional<Account>& reader)
      : limits_(limits), reader_(reader) {}

  void folder(const Descriptor& from, const Descriptor& to, const std::string& path,
              const Places& places, int depth);
  Artefacts take() { return std::move(out_); }

 private:
  std::vector<std::string> names_in(const Descriptor& folder, const std::string& path);
  void leave_out(const std::string& path, const std::string& why);
  void file(const Descriptor& from, const Descriptor& to, const std::string& name,
            const std::string& path);

  const ArtefactLimits& limits_;
  const std::optional<Account>& reader_;
  Artefacts out_;
  uint64_t bytes_ = 0;
  size_t looked_at_ = 0;
};

void Copy::leave_out(const std::string& path, const std::string& why) {
  if (out_.left_out.size() < most_left_out) out_.left_out.push_back({path, why});
}

// Sorted: what a limit cuts off does not depend on the file system.
std::vector<std::string> Copy::names_in(const Descriptor& folder, const std::string& path) {
  std::vector<std::string> out;
  const int own = fcntl(folder.get(), F_DUPFD_CLOEXEC, 0);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(own < 0 ? nullptr : fdopendir(own), closedir);
  if (!listing) {
    if (own >= 0) close(own);
    return out;
  }
  while (const dirent* entry = readdir(listing.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (++looked_at_ > limits_.looked_at) {
      leave_out(path, "the folder holds too many names");
      break;
    }
    out.push_back(name);
  }
  std::ranges::sort(out);
  return out;
}

void Copy::file(const Descriptor& from, const Descriptor& to, const std::string& name,
                const std::string& path) {
  if (out_.files.size() >= limits_.files) return leave_out(path, "too many files");
  Descriptor source;
  {
    const As as(reader_);
    // Not to wait for somebody who writes into a pipe that took the file's place.
    source = Descriptor(
        openat(from.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  }
  struct stat status {};
  if (source.get() < 0 || fstat(source.get(), &status) != 0) {
    return leave_out(path, std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) return leave_out(path, "it is not a file");
  const uint64_t left = limits_.bytes - bytes_;
  if (static_cast<uint64_t>(status.st_size) > left) return leave_out(path, "over the size limit");
  const Descriptor target(
      openat(to.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (target.get() < 0) fail("make", path);
  copy_bytes(source.get(), target.get(), left, path);
  // It may have grown meanwhile.
  if (fstat(target.get(), &status) != 0) fail("read", path);
  if (static_cast<uint64_t>(status.st_size) > left) {
    if (unlinkat(to.get(), name.c_str(), 0) != 0) fail("remove", path);
    return leave_out(path, "over the size limit");
  }
  bytes_ += static_cast<uint64_t>(status.st_size);
  out_.files.push_back({path, static_cast<uint64_t>(status.st_size)});
}

void Copy::folder(const Descriptor& from, const Descriptor& to, const std::string& path,
                  const Places& places, int depth) {
  if (depth > limits_.depth) return leave_out(path, "nested too deeply");
  for (const std::string& name : names_in(from, path)) {
    const Places next = beyond(places, name);
    if (next.empty()) continue;
    const std::string here = path.empty() ? name : path + "/" + name;
    const bool named = std::ranges::any_of(next, [](const Place& place) { return place.over(); });
    struct stat status {};
    Descriptor below;
    {
      const As as(reader_);
      if (fstatat(from.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (S_ISDIR(status.st_mode)) {
        below = Descriptor(
            openat(from.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
      }
    }
    if (!S_ISDIR(status.st_mode)) {
      if (!named) continue;
      if (!plain(name)) {
        leave_out("", "a name that cannot be written down");
      } else if (S_ISREG(status.st_mode)) {
        file(from, to, name, here);
      } else {
        leave_out(here, S_ISLNK(status.st_mode) ? "a symbolic link" : "it is not a file");
      }
    } else if (!plain(name)) {
      if (named) leave_out("", "a name that cannot be written down");
    } else if (below.get() < 0) {
      if (named) leave_out(here, "the folder cannot be read");
    } else {
      if (mkdirat(to.get(), name.c_str(), 0700) != 0) fail("make", here);
      const Descriptor target(openat(to.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (target.get() < 0) fail("open", here);
      folder(below, target, here, next, depth + 1);
      // Gone again when nothing came into it.
      unlinkat(to.get(), name.c_str(), AT_REMOVEDIR);
    }
  }
}

}  // namespace

std::vector<std::string> pattern_problems(const std::vector<std::string>& patterns) {
  std::vector<std::string> out;
  if (patterns.size() > most_patterns) out.emplace_back("artefacts: at most 100 patterns");
  for (const std::string& pattern : patterns) {
    const std::vector<std::string> parts = parts_of(pattern);
    const bool leaves = std::ranges::any_of(
        parts, [](const std::string& part) { return part == "." || part == ".."; });
    if (parts.empty() || leaves || pattern.starts_with('/') ||
        pattern.size() > most_pattern_bytes || pattern.find('\0') != std::string::npos) {
      out.emplace_back("artefacts: give paths inside the working folder, such as out/*.onnx");
      break;
    }
  }
  return out;
}

Artefacts copy_artefacts(const fs::path& from, const std::vector<std::string>& patterns,
                         const fs::path& to, const ArtefactLimits& limits,
                         const std::optional<Account>& reader) {
  Descriptor source;
  {
    const As as(reader);
    source = Descriptor(open(from.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  if (source.get() < 0) fail("open the working folder", from);
  const Descriptor target(open(to.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (target.get() < 0) fail("open", to);
  std::vector<std::vector<std::string>> split;
  for (const std::string& pattern : patterns) split.push_back(parts_of(pattern));
  Places places;
  for (const auto& pattern : split) add(places, {&pattern, 0});
  Copy copy(limits, reader);
  copy.folder(source, target, "", places, 0);
  Artefacts out = copy.take();
  out.state = Artefacts::State::kept;
  return out;
}

}  // namespace dais::jobs
