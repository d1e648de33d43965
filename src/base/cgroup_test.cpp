#include "base/cgroup.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace dais {
namespace {

/// A folder that looks like mounted control groups.
class CpuQuota : public testing::Test {
 protected:
  CpuQuota() {
    std::string pattern = testing::TempDir() + "/cgroupXXXXXX";
    mount_ = mkdtemp(pattern.data());
  }
  ~CpuQuota() override { std::filesystem::remove_all(mount_); }

  void put(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((mount_ / file).parent_path());
    std::ofstream(mount_ / file) << text << '\n';
  }
  std::optional<double> cores(std::string_view membership) {
    return cpu_quota_cores(membership, mount_);
  }
  const std::filesystem::path& mount() const { return mount_; }

 private:
  std::filesystem::path mount_;
};

TEST_F(CpuQuota, IsAbsentWithoutLimits) {
  EXPECT_EQ(cores("0::/\n"), std::nullopt);
  put("cpu.max", "max 100000");
  put("user.slice/cpu.max", "max 100000");
  EXPECT_EQ(cores("0::/user.slice\n"), std::nullopt);
  put("cpu/cpu.cfs_quota_us", "-1");
  put("cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cores("3:cpu,cpuacct:/\n"), std::nullopt);
}

TEST_F(CpuQuota, ReadsVersion2) {
  put("system.slice/train.service/cpu.max", "150000 100000");
  EXPECT_EQ(cores("0::/system.slice/train.service\n"), 1.5);
  EXPECT_EQ(cores("0::/system.slice\n"), std::nullopt);
}

TEST_F(CpuQuota, TakesTheTightestGroupOnTheWay) {
  put("a/cpu.max", "100000 100000");
  put("a/b/cpu.max", "400000 100000");
  put("a/b/c/cpu.max", "max 100000");
  EXPECT_EQ(cores("0::/a/b/c\n"), 1.0);
  put("cpu.max", "50000 100000");
  EXPECT_EQ(cores("0::/a/b/c\n"), 0.5);
}

TEST_F(CpuQuota, ReadsVersion1UnderEitherMountName) {
  put("cpu/jobs/cpu.cfs_quota_us", "250000");
  put("cpu/jobs/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cores("5:cpu:/jobs\n"), 2.5);
  put("cpu,cpuacct/jobs/cpu.cfs_quota_us", "200000");
  put("cpu,cpuacct/jobs/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cores("9:cpuset:/x\n5:cpu,cpuacct:/jobs\n"), 2.0);
  EXPECT_EQ(cores("5:cpuset,cpuacct:/jobs\n"), std::nullopt);
}

TEST_F(CpuQuota, FindsTheContainerLimitAtTheMountedRoot) {
  put("cpu/cpu.cfs_quota_us", "300000");
  put("cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cores("4:cpu,cpuacct:/docker/0123abcd\n0::/\n"), 3.0);
}

TEST_F(CpuQuota, MemoryIsThatOfTheGroupWithTheLowestLimit) {
  EXPECT_EQ(group_memory("0::/a/b\n", mount()), std::nullopt);
  put("memory.max", "max");
  put("memory.current", "900");
  put("a/memory.max", "1000");
  put("a/memory.current", "700");
  put("a/b/memory.max", "2000");
  put("a/b/memory.current", "600");
  EXPECT_EQ(group_memory("0::/a/b\n", mount()), (GroupMemory{1000, 700}));
  put("memory/jobs/memory.limit_in_bytes", "500");
  put("memory/jobs/memory.usage_in_bytes", "20");
  EXPECT_EQ(group_memory("4:memory:/jobs\n0::/a/b\n", mount()), (GroupMemory{500, 20}));
  // The number by which version 1 says that there is none.
  put("memory/open/memory.limit_in_bytes", "9223372036854771712");
  put("memory/open/memory.usage_in_bytes", "20");
  EXPECT_EQ(group_memory("4:memory:/open\n", mount()), std::nullopt);
  put("memory/odd/memory.limit_in_bytes", "much");
  EXPECT_EQ(group_memory("4:memory:/odd\n", mount()), std::nullopt);
}

TEST_F(CpuQuota, IgnoresMalformedText) {
  put("cpu.max", "many few");
  put("a/cpu.max", "100000");
  put("b/cpu.max", "100000 0");
  for (const char* membership : {"", "\n", "0", "0:", "::", "0::", "0::/a", "0::/b", "x:cpu"})
    EXPECT_EQ(cores(membership), std::nullopt) << membership;
}

}  // namespace
}  // namespace dais
