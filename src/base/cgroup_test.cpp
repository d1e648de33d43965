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

TEST_F(CpuQuota, IgnoresMalformedText) {
  put("cpu.max", "many few");
  put("a/cpu.max", "100000");
  put("b/cpu.max", "100000 0");
  for (const char* membership : {"", "\n", "0", "0:", "::", "0::", "0::/a", "0::/b", "x:cpu"})
    EXPECT_EQ(cores(membership), std::nullopt) << membership;
}

}  // namespace
}  // namespace dais
