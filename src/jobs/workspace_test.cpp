#include "jobs/workspace.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "jobs/data_folder.h"

namespace dais::jobs {
namespace {

namespace fs = std::filesystem;

constexpr uid_t nobody = 65'534;

fs::path new_folder() {
  std::string name = (fs::temp_directory_path() / "dais_workspace_XXXXXX").string();
  EXPECT_NE(mkdtemp(name.data()), nullptr);
  return name;
}

// Without an owner, and as root for one too.
class JobsWorkspace : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && geteuid() != 0) GTEST_SKIP() << "only root copies for others";
    folder_ = new_folder();
    fs::permissions(folder_, fs::perms::all);
    from_ = folder_ / "work";
    to_ = folder_ / "closed" / "copy";
    fs::create_directory(from_);
    make_folder(to_.parent_path());
    if (GetParam()) owner_ = Account{nobody, nobody, {}, {}};
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((from_ / path).parent_path());
    std::ofstream(from_ / path) << text;
  }
  /// The error of a copy that must fail, of which nothing may be left.
  Error failure(const CopyLimits& limits = {}) const {
    try {
      copy_folder(from_, to_, limits, owner_);
    } catch (const Error& error) {
      EXPECT_FALSE(fs::exists(to_));
      return error;
    }
    ADD_FAILURE() << "it was copied";
    return {Code::internal, "none"};
  }
  static std::string text_of(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_, from_, to_;
  std::optional<Account> owner_;
};

TEST_P(JobsWorkspace, CopiesFilesFoldersAndLinks) {
  write("a", "one");
  write("below/deep/b", "two");
  fs::permissions(from_ / "a", fs::perms::owner_all | fs::perms::others_read);
  fs::create_symlink("/nowhere", from_ / "link");
  copy_folder(from_, to_, {}, owner_);
  EXPECT_EQ(text_of(to_ / "a"), "one");
  EXPECT_EQ(text_of(to_ / "below/deep/b"), "two");
  EXPECT_EQ(fs::read_symlink(to_ / "link"), "/nowhere");
  for (const fs::path& path : {to_, to_ / "a", to_ / "below/deep/b"}) {
    struct stat status {};
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, owner_ ? nobody : geteuid()) << path;
  }
  EXPECT_EQ(fs::status(to_).permissions(), fs::perms::owner_all);
  // What is there stays as it is.
  EXPECT_THROW(copy_folder(from_, to_, {}, owner_), Error);
  EXPECT_EQ(text_of(to_ / "a"), "one");
}

TEST_P(JobsWorkspace, RefusesWhatIsNoFile) {
  ASSERT_EQ(mkfifo((from_ / "pipe").c_str(), 0666), 0);
  const Error error = failure();
  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_EQ(error.where(), (from_ / "pipe").string());
}

TEST_P(JobsWorkspace, KeepsToItsLimits) {
  write("small", "12345");
  ASSERT_EQ(truncate((from_ / "small").c_str(), int64_t{1} << 40), 0);
  EXPECT_EQ(failure().code(), Code::exhausted);
  ASSERT_EQ(truncate((from_ / "small").c_str(), 5), 0);
  EXPECT_EQ(failure({4, 10, 10}).code(), Code::exhausted);
  write("more", "");
  EXPECT_EQ(failure({100, 1, 10}).code(), Code::exhausted);
  write("a/b/c/d", "");
  EXPECT_EQ(failure({100, 10, 2}).code(), Code::exhausted);
}

TEST_P(JobsWorkspace, NamesWhatIsMissing) {
  fs::remove(from_);
  const Error error = failure();
  EXPECT_EQ(error.code(), Code::not_found);
  EXPECT_EQ(error.where(), from_.string());
}

INSTANTIATE_TEST_SUITE_P(Owners, JobsWorkspace, testing::Bool(),
                         [](const auto& owned) { return owned.param ? "Another" : "None"; });

TEST(JobsWorkspaceOfOthers, WhatTheOwnerCannotReadIsNotCopied) {
  if (geteuid() != 0) GTEST_SKIP() << "only root copies for others";
  const fs::path folder = new_folder(), from = folder / "work";
  fs::permissions(folder, fs::perms::all);
  fs::create_directories(from / "closed");
  std::ofstream(from / "closed" / "file") << "secret";
  const auto refused = [&](const fs::path& where) {
    try {
      copy_folder(from, folder / "copy", {}, Account{nobody, nobody, {}, {}});
      ADD_FAILURE() << "it was copied";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::unavailable);
      EXPECT_EQ(error.where(), where.string());
    }
    EXPECT_FALSE(fs::exists(folder / "copy"));
  };
  fs::permissions(from / "closed" / "file", fs::perms::owner_read);
  refused(from / "closed" / "file");
  fs::permissions(from / "closed", fs::perms::owner_all);
  refused(from / "closed");
  // A folder that is a link leads no further than its owner could go.
  fs::permissions(from, fs::perms::owner_all);
  fs::create_directory_symlink(from, folder / "link");
  EXPECT_THROW(copy_folder(folder / "link", folder / "copy", {}, Account{nobody, nobody, {}, {}}),
               Error);
  fs::remove_all(folder);
}

TEST(JobsDataFolder, OthersSeeNothingOfWhatAnEarlierVersionLeftOpen) {
  const fs::path folder = new_folder();
  fs::create_directories(folder / "cycles");
  fs::permissions(folder / "cycles", fs::perms::all);
  std::ofstream(folder / "jobs.sqlite") << "x";
  fs::permissions(folder / "jobs.sqlite", fs::perms::all);
  make_folder(folder / "jobs");
  let_pass(folder / "jobs");
  const auto mode = [&](const char* path) {
    return static_cast<unsigned>(fs::status(folder / path).permissions());
  };
  make_data_folder(folder, true);
  EXPECT_EQ(mode(""), 0711U);
  EXPECT_EQ(mode("cycles"), 0700U);
  EXPECT_EQ(mode("jobs"), 0711U);
  EXPECT_EQ(mode("jobs.sqlite"), 0600U);
  make_data_folder(folder, false);
  EXPECT_EQ(mode(""), 0700U);
  // What somebody else put there keeps its rights.
  std::ofstream(folder / "notes") << "x";
  fs::permissions(folder / "notes", fs::perms::all);
  make_data_folder(folder, true);
  EXPECT_EQ(mode("notes"), 0777U);
  fs::remove_all(folder);
}

TEST(JobsDataFolder, AFolderOfOtherThingsIsRefusedAndKeepsItsRights) {
  const fs::path folder = new_folder();
  fs::create_directories(folder / "jobs");
  fs::create_directories(folder / "photos");
  for (const fs::path& path : {folder, folder / "jobs", folder / "photos"}) {
    fs::permissions(path, fs::perms::all);
  }
  EXPECT_THROW(make_data_folder(folder, true), Error);
  for (const fs::path& path : {folder, folder / "jobs", folder / "photos"}) {
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::all) << path;
  }
  fs::remove_all(folder / "photos");
  if (geteuid() == 0) {
    ASSERT_EQ(chown(folder.c_str(), nobody, nobody), 0);
    EXPECT_THROW(make_data_folder(folder, true), Error);
    EXPECT_EQ(fs::status(folder).permissions(), fs::perms::all);
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace dais::jobs
