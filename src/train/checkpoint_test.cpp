#include "train/checkpoint.h"

#include <gtest/gtest.h>

#include <fstream>

namespace dais::train {
namespace {

namespace fs = std::filesystem;

class Checkpoints : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "dais_checkpoint_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  void TearDown() override { fs::remove_all(path_); }

  static Checkpoint sample(int64_t update) {
    return {
        update, {{"w", Tensor::of<float>({2}, {static_cast<float>(update), 1})}}, R"({"seed":7})"};
  }
  fs::path path_;
};

TEST_F(Checkpoints, NewestOfTheKeptIsRead) {
  CheckpointFolder folder(path_ / "run", 2);
  for (int64_t update : {5, 10, 15}) folder.write(sample(update));
  EXPECT_EQ(folder.updates(), (std::vector<int64_t>{10, 15}));
  const auto read = folder.newest();
  ASSERT_TRUE(read);
  EXPECT_EQ(read->update, 15);
  EXPECT_TRUE(read->tensors.at(0).second.identical(sample(15).tensors[0].second));
  EXPECT_NE(read->facts.find("\"seed\": 7"), std::string::npos);
}

TEST_F(Checkpoints, BestStaysBeyondTheNewest) {
  CheckpointFolder folder(path_, 1);
  folder.write(sample(1));
  folder.set_best(1, 0.9);
  folder.write(sample(2));
  folder.write(sample(3));
  EXPECT_EQ(folder.updates(), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(folder.best()->first, 1);
}

TEST_F(Checkpoints, SameUpdateIsReplaced) {
  CheckpointFolder folder(path_, 3);
  folder.write(sample(1));
  Checkpoint other = sample(1);
  other.facts = R"({"seed":8})";
  folder.write(other);
  EXPECT_EQ(folder.updates().size(), 1u);
  EXPECT_NE(folder.read(1).facts.find("\"seed\": 8"), std::string::npos);
}

TEST_F(Checkpoints, DamageIsPassedOver) {
  CheckpointFolder folder(path_, 3);
  folder.write(sample(1));
  folder.write(sample(2));
  folder.write(sample(3));
  {
    std::fstream file(path_ / "update-000000003" / "state.safetensors",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('\x55');
  }
  fs::resize_file(path_ / "update-000000002" / "facts.json", 10);
  int reported = 0;
  const auto read = folder.newest([&](const Error&) { ++reported; });
  EXPECT_EQ(reported, 2);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->update, 1);
}

TEST_F(Checkpoints, InterruptedWritesAreCleanedUp) {
  fs::create_directories(path_ / ".writing");
  std::ofstream(path_ / ".writing" / "state.safetensors") << "half";
  CheckpointFolder folder(path_, 3);
  EXPECT_FALSE(folder.newest());
  EXPECT_FALSE(fs::exists(path_ / ".writing"));
}

}  // namespace
}  // namespace dais::train
