#include "devices/cpu.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace dais::devices {
namespace {

namespace fs = std::filesystem;

class DevicesCpu : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "dais_cpu_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    fs::create_directory(root_ / "proc");
  }
  void TearDown() override { fs::remove_all(root_); }
  void tell(const std::string& file, const std::string& text) const {
    std::ofstream(root_ / "proc" / file) << text;
  }

  fs::path root_;
};

TEST_F(DevicesCpu, WorkSinceTheLastReadingAndMemoryThatIsNotAvailable) {
  tell("stat", "cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2 3 4\n");
  tell("meminfo", "MemTotal:       1000 kB\nMemFree: 10 kB\nMemAvailable:    400 kB\nPages: 3\n");
  CpuMeter meter(root_.string(), 0);
  tell("stat", "cpu  160 10 60 900 60 10 5 5 7 0\n");
  const CpuSample sample = meter.sample();
  // 100 of 210 ticks; what guests had is among the users'.
  ASSERT_TRUE(sample.utilisation);
  EXPECT_NEAR(*sample.utilisation, 100.0 / 210, 1e-12);
  EXPECT_EQ(sample.memory_total_bytes, 1000 << 10);
  EXPECT_EQ(sample.memory_used_bytes, 600 << 10);
  tell("stat", "cpu  160 10 60 1000 60 10 5 5\n");
  EXPECT_EQ(meter.sample().utilisation, 0.0);
}

TEST_F(DevicesCpu, WhatTheSystemDoesNotTellIsMissing) {
  CpuMeter none(root_.string(), 0);
  EXPECT_FALSE(none.sample().utilisation || none.sample().memory_total_bytes);
  tell("stat", "cpu\n");
  tell("meminfo", "MemTotal: 1000 kB\n");
  CpuMeter cut(root_.string(), 0);
  EXPECT_FALSE(cut.sample().utilisation || cut.sample().memory_used_bytes);
  tell("stat", "cpu  1 1 1 1\n");
  CpuMeter young(root_.string(), 60);
  EXPECT_FALSE(young.sample().utilisation);
}

TEST_F(DevicesCpu, LimitsOfControlGroups) {
  CpuMeter meter(root_.string(), 0);
  EXPECT_FALSE(meter.sample().group_cores || meter.sample().group_memory_limit_bytes);
  fs::create_directory(root_ / "proc" / "self");
  tell("self/cgroup", "0::/box\n");
  const fs::path group = root_ / "sys/fs/cgroup/box";
  fs::create_directories(group);
  std::ofstream(group / "cpu.max") << "150000 100000\n";
  std::ofstream(group / "memory.max") << "4096\n";
  std::ofstream(group / "memory.current") << "1024\n";
  const CpuSample sample = meter.sample();
  EXPECT_EQ(sample.group_cores, 1.5);
  EXPECT_EQ(sample.group_memory_limit_bytes, 4096);
  EXPECT_EQ(sample.group_memory_used_bytes, 1024);
}

TEST_F(DevicesCpu, OfThisMachine) {
  CpuMeter meter("", 0.2);
  usleep(300'000);
  const CpuSample sample = meter.sample();
  ASSERT_TRUE(sample.utilisation && sample.memory_total_bytes && sample.memory_used_bytes);
  EXPECT_GE(*sample.utilisation, 0);
  EXPECT_LE(*sample.utilisation, 1);
  EXPECT_LT(*sample.memory_used_bytes, *sample.memory_total_bytes);
}

}  // namespace
}  // namespace dais::devices
