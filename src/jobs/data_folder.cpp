#include "jobs/data_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

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

// Earlier versions left to the data folder's own rights what others may not read.
void close_entry(const fs::directory_entry& entry) {
  const fs::file_status status = entry.symlink_status();
  constexpr fs::perms others = fs::perms::group_read | fs::perms::group_write |
                               fs::perms::others_read | fs::perms::others_write;
  if ((status.permissions() & others) == fs::perms::none) return;
  if (fs::is_directory(status)) set(entry.path(), fs::perms::owner_all);
  if (fs::is_regular_file(status)) {
    set(entry.path(), fs::perms::owner_read | fs::perms::owner_write);
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
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) close_entry(entry);
  if (error) fail("read the data folder", error, folder);
  set(folder, for_everybody ? passable : fs::perms::owner_all);
}

void let_pass(const fs::path& folder) { set(folder, passable); }

}  // namespace dais::jobs
