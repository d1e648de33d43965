#include "jobs/artefacts.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "base/error.h"
#include "jobs/descriptor.h"
#include "jobs/request.h"

namespace dais::jobs {
namespace {

namespace fs = std::filesystem;

class JobsArtefacts : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "dais_artefacts_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    work_ = folder_ / "work";
    fs::create_directories(work_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((work_ / path).parent_path());
    std::ofstream(work_ / path) << text;
  }
  Artefacts copy(const std::vector<std::string>& patterns, const ArtefactLimits& limits = {}) {
    fs::remove_all(folder_ / "kept");
    fs::create_directories(folder_ / "kept");
    return copy_artefacts(work_, patterns, folder_ / "kept", limits, std::nullopt);
  }
  // What lies in the folder of copies, whatever the list says.
  std::map<std::string, std::string> kept(const fs::path& in) const {
    std::map<std::string, std::string> out;
    for (const auto& item : fs::recursive_directory_iterator(in)) {
      EXPECT_FALSE(fs::is_symlink(item.symlink_status())) << item.path();
      if (item.is_directory()) {
        EXPECT_FALSE(fs::is_empty(item.path())) << item.path();
        continue;
      }
      std::ifstream file(item.path());
      out[fs::relative(item.path(), in)] = {std::istreambuf_iterator<char>(file), {}};
    }
    return out;
  }
  std::set<std::string> names(const std::vector<std::string>& patterns) {
    const Artefacts all = copy(patterns);
    std::set<std::string> listed, there;
    for (const KeptFile& file : all.files) listed.insert(file.path);
    for (const auto& [path, text] : kept(folder_ / "kept")) there.insert(path);
    EXPECT_EQ(listed, there);
    return listed;
  }
  static bool wait_for(const std::function<bool()>& condition) {
    for (int i = 0; i < 2000; ++i) {
      if (condition()) return true;
      usleep(10'000);
    }
    return false;
  }

  fs::path folder_, work_;
};

using Names = std::set<std::string>;

TEST_F(JobsArtefacts, PatternsNameFilesAndFolders) {
  for (const char* path : {"model.onnx", "notes.txt", "out/a.onnx", "out/b.txt", "out/deep/c.onnx",
                           "out/.hidden/d.onnx", "logs/one/x", "logs/two/x", "logs/two/y"}) {
    write(path, path);
  }
  EXPECT_EQ(names({"*.onnx"}), Names({"model.onnx"}));
  EXPECT_EQ(names({"out/*.onnx", "notes.???"}), Names({"out/a.onnx", "notes.txt"}));
  EXPECT_EQ(names({"**/*.onnx"}), Names({"model.onnx", "out/a.onnx", "out/deep/c.onnx"}));
  EXPECT_EQ(names({"logs/*/x"}), Names({"logs/one/x", "logs/two/x"}));
  EXPECT_EQ(names({"logs/t[vw]o"}), Names({"logs/two/x", "logs/two/y"}));
  EXPECT_EQ(names({"out/"}),
            Names({"out/a.onnx", "out/b.txt", "out/deep/c.onnx", "out/.hidden/d.onnx"}));
  EXPECT_EQ(names({"out/**/c.onnx"}), Names({"out/deep/c.onnx"}));
  EXPECT_EQ(names({"absent", "out/absent/*"}), Names());
  EXPECT_EQ(kept(folder_ / "kept"), (std::map<std::string, std::string>()));
  copy({"model.onnx"});
  EXPECT_EQ(kept(folder_ / "kept").at("model.onnx"), "model.onnx");
}

TEST_F(JobsArtefacts, NothingOutsideTheFolderIsReached) {
  std::ofstream(folder_ / "secret") << "secret";
  fs::create_directories(folder_ / "outside");
  std::ofstream(folder_ / "outside" / "secret") << "secret";
  write("out/real", "real");
  fs::create_symlink(folder_ / "secret", work_ / "out" / "link");
  fs::create_directory_symlink(folder_ / "outside", work_ / "out" / "folder");
  fs::create_directory_symlink(folder_ / "outside", work_ / "way");
  ASSERT_EQ(mkfifo((work_ / "out" / "pipe").c_str(), 0600), 0);
  const Artefacts all = copy({"**", "way/secret", "out/folder/secret"});
  EXPECT_EQ(kept(folder_ / "kept"), (std::map<std::string, std::string>{{"out/real", "real"}}));
  std::set<std::string> left;
  for (const LeftOut& one : all.left_out) left.insert(one.path);
  EXPECT_EQ(left, Names({"out/folder", "out/link", "out/pipe", "way"}));
  for (const char* pattern : {"../secret", "/etc/passwd", "a/../../secret", ".", "", "a/./b"}) {
    EXPECT_EQ(pattern_problems({pattern}).size(), 1u) << pattern;
  }
  EXPECT_TRUE(pattern_problems({"a", "**/b*", ".hidden/x"}).empty());
}

TEST_F(JobsArtefacts, LimitsHoldAndWhatTheyCutOffIsSaid) {
  write("a", std::string(600, 'a'));
  write("b", std::string(600, 'b'));
  write("c", std::string(300, 'c'));
  ArtefactLimits limits;
  limits.bytes = 1000;
  Artefacts all = copy({"*"}, limits);
  ASSERT_EQ(all.files.size(), 2u);
  EXPECT_EQ(all.files[0].path, "a");
  EXPECT_EQ(all.files[0].bytes, 600u);
  EXPECT_EQ(all.files[1].path, "c");
  ASSERT_EQ(all.left_out.size(), 1u);
  EXPECT_EQ(all.left_out[0].path, "b");
  limits.files = 1;
  EXPECT_EQ(copy({"*"}, limits).files.size(), 1u);
}

/// /proc has files that say they are empty and hold hundreds of gigabytes.
TEST_F(JobsArtefacts, WhatHoldsMoreThanItSaysIsCutOffAtTheLimit) {
  const fs::path endless = "/proc/" + std::to_string(getpid());
  std::ifstream map(endless / "pagemap", std::ios::binary);
  if (!map.get()) GTEST_SKIP() << "this system shows no pagemap";
  fs::create_directories(folder_ / "kept");
  const Artefacts made =
      copy_artefacts(endless, {"pagemap"}, folder_ / "kept", {.bytes = 1 << 20}, std::nullopt);
  EXPECT_TRUE(made.files.empty());
  EXPECT_EQ(made.left_out.size(), 1U);
  EXPECT_TRUE(fs::is_empty(folder_ / "kept"));
}

TEST_F(JobsArtefacts, APromiseIsKeptOnceAndByWhoeverComesNext) {
  write("out/result", "42");
  const ArtefactKeeper keeper(folder_ / "data", {});
  fs::create_directories(folder_ / "data" / "jobs" / "7");
  EXPECT_EQ(keeper.read(7).state, Artefacts::State::absent);
  ASSERT_TRUE(keeper.promise(7));
  ASSERT_TRUE(keeper.promise(7));
  // What a process that died left of it.
  fs::create_directories(folder_ / "data" / "keeping" / "7" / "files" / "half");
  const ArtefactKeeper next(folder_ / "data", {});
  EXPECT_EQ(next.promised(), std::vector<int64_t>{7});
  EXPECT_EQ(next.read(7).state, Artefacts::State::keeping);
  for (int i = 0; i < 3; ++i) next.keep({7, work_, {"out"}, std::nullopt});
  ASSERT_TRUE(wait_for([&] { return next.read(7).state == Artefacts::State::kept; }));
  ASSERT_TRUE(wait_for([&] { return next.promised().empty(); }));
  EXPECT_EQ(kept(folder_ / "data" / "jobs" / "7" / "artefacts" / "files"),
            (std::map<std::string, std::string>{{"out/result", "42"}}));
  const Descriptor file(next.open(7, "out/result"));
  char text[8] = {};
  EXPECT_EQ(read(file.get(), text, sizeof text), 2);
  EXPECT_STREQ(text, "42");
  for (const char* path : {"out", "", "../list.json", "out/../out/result", "/etc/passwd"}) {
    EXPECT_THROW(next.open(7, path), Error) << path;
  }
}

// A job of a user keeps only what he could read himself.
TEST_F(JobsArtefacts, FilesAreOpenedAsTheUserOfTheJob) {
  if (geteuid() != 0) GTEST_SKIP() << "only root opens files as somebody else";
  constexpr uid_t nobody = 65'534;
  chmod(folder_.c_str(), 0755);
  write("his", "his");
  write("roots", "roots");
  chmod((work_ / "roots").c_str(), 0600);
  write("closed/file", "roots");
  chmod((work_ / "closed").c_str(), 0700);
  fs::create_directories(folder_ / "data" / "jobs" / "8");
  fs::permissions(folder_ / "data", fs::perms::owner_all);
  const ArtefactKeeper keeper(folder_ / "data", {});
  ASSERT_TRUE(keeper.promise(8));
  keeper.keep({8, work_, {"**"}, Account{nobody, nobody, {}, {}}});
  ASSERT_TRUE(wait_for([&] { return keeper.read(8).state == Artefacts::State::kept; }));
  EXPECT_EQ(kept(folder_ / "data" / "jobs" / "8" / "artefacts" / "files"),
            (std::map<std::string, std::string>{{"his", "his"}}));
  EXPECT_EQ(keeper.read(8).left_out.size(), 2u);
}

TEST_F(JobsArtefacts, AJobFileNamesThem) {
  const auto read = [](const std::string& text) {
    return read_job_file("command: [a]\nartefacts: " + text + "\n", "job.yaml", "/tmp")[0];
  };
  EXPECT_EQ(read("out/*.onnx").artefacts, std::vector<std::string>{"out/*.onnx"});
  const JobRequest request = read("[a, 'b/**']");
  EXPECT_EQ(request.artefacts, (std::vector<std::string>{"a", "b/**"}));
  EXPECT_EQ(request_from_json(to_json(request)), request);
  EXPECT_THROW(read("[../up]"), Error);
}

}  // namespace
}  // namespace dais::jobs
