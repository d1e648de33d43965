#include "jobs/data_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "base/error.h"
#include "jobs/descriptor.h"

namespace dais::jobs {
namespace {

namespace fs = std::filesystem;

constexpr fs::perms passable =
    fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec;

[[noreturn]] void fail(const std::string& action, const std::error_code& error,
                       const fs::path& path) {
  throw Error(error == std::errc::no_space_on_device ? Code::exhausted : Code::unavailable,
              "cannot " + action + ": " + error.message(), path.string(),
              "Check the rights and the free space");
}

void set(const fs::path& path, fs::perms mode) {
  std::error_code error;
  fs::permissions(path, mode, error);
  if (error) fail("set the rights of it", error, path);
}

bool of_ours(const std::string& name) {
  constexpr std::array ours = {"cycles", "incoming", "jobs", "keeping", "dais.sock"};
  return name.starts_with("jobs.sqlite") || std::ranges::count(ours, name) > 0;
}

// A folder of somebody else's, or one that holds other things, is not taken: what its rights are
// decides who reads those.
void check_own(const fs::path& folder) {
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0) {
    fail("use the data folder", {errno, std::generic_category()}, folder);
  }
  if (status.st_uid != geteuid()) {
    throw Error(Code::invalid_argument, "the data folder belongs to another user", folder.string(),
                "Choose another with --data");
  }
  std::error_code error;
  bool store = false;
  std::string other;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    store = store || name == "jobs.sqlite";
    if (!of_ours(name)) other = name;
  }
  if (error) fail("read the data folder", error, folder);
  if (store || other.empty()) return;
  throw Error(Code::invalid_argument,
              "the folder holds '" + other + "' and no store of jobs: it is none of dais's",
              folder.string(), "Name a new or empty folder with --data");
}

// Earlier versions left to the data folder's own rights what others may not read. By descriptor: a
// link in its place is not followed.
void close_entry(const fs::path& path) {
  const Descriptor entry(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (entry.get() < 0 || fstat(entry.get(), &status) != 0 || (status.st_mode & 066) == 0) return;
  const mode_t mode = S_ISDIR(status.st_mode) ? 0700 : 0600;
  if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode)) return;
  if (fchmod(entry.get(), mode) != 0) {
    fail("set the rights of it", {errno, std::generic_category()}, path);
  }
}

}  // namespace

void make_folder(const fs::path& folder) {
  std::error_code error;
  if (fs::is_directory(folder, error)) return;
  if (folder.has_parent_path() && folder.parent_path() != folder) make_folder(folder.parent_path());
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    fail("make a folder", {errno, std::generic_category()}, folder);
  }
}

void make_data_folder(const fs::path& folder, bool for_everybody) {
  make_folder(folder);
  check_own(folder);
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (of_ours(entry.path().filename())) close_entry(entry.path());
  }
  if (error) fail("read the data folder", error, folder);
  set(folder, for_everybody ? passable : fs::perms::owner_all);
}

void let_pass(const fs::path& folder) { set(folder, passable); }

}  // namespace dais::jobs
