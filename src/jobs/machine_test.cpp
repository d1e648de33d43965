// GPUs that MIG divides, by the stand-in for NVIDIA's library and a stand-in for /proc.
#include "jobs/machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "jobs/runner.h"

namespace dais::jobs {
namespace {

namespace fs = std::filesystem;

class JobsDivided : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("dais_divided_" + std::to_string(getpid()));
    fs::create_directories(folder_);
    setenv("DAIS_FAKE_NVML", (folder_ / "values").c_str(), 1);
  }
  void TearDown() override {
    unsetenv("DAIS_FAKE_NVML");
    fs::remove_all(folder_);
  }
  void write(const fs::path& path, const std::string& text) const {
    fs::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path) << text;
  }
  std::vector<LocalDevice> devices() const {
    const fs::path library = fs::read_symlink("/proc/self/exe").parent_path() / "dais_fake_nvml.so";
    return divided_devices(library.string(), folder_.string());
  }
  void divide_one() const {
    write("values",
          "0 memory_total 80\n1 mig 2\n1 minor 1\n1 mig0.memory_total 10\n"
          "1 mig0.gpu_instance 9\n1 mig1.memory_total 10\n1 mig1.gpu_instance 11\n");
    write("proc/devices", "Character devices:\n195 nvidia\n235 nvidia-caps\n");
    const fs::path parts = "proc/driver/nvidia/capabilities/gpu1/mig";
    write(parts / "gi9/access", "DeviceFileMinor: 84\nDeviceFileMode: 292\n");
    write(parts / "gi9/ci0/access", "DeviceFileMinor: 85\nDeviceFileMode: 292\n");
    write(parts / "gi11/access", "DeviceFileMinor: 102\nDeviceFileMode: 292\n");
    write(parts / "gi11/ci0/access", "DeviceFileMinor: 103\nDeviceFileMode: 292\n");
  }

  fs::path folder_;
};

using Files = std::vector<std::string>;

TEST_F(JobsDivided, DevicesGoByTheirNumbersWhereNoneIsDivided) {
  EXPECT_TRUE(devices().empty());  // no driver
  write("values", "0 memory_total 80\n1 memory_total 80\n");
  EXPECT_TRUE(devices().empty());
}

TEST_F(JobsDivided, PartsAreDevicesWithFilesOfTheirOwn) {
  divide_one();
  const std::vector<LocalDevice> found = devices();
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].visible, "FAKE-0");
  EXPECT_FALSE(found[0].part);
  EXPECT_EQ(found[1].visible, "MIG-FAKE-1-0");
  EXPECT_EQ(found[1].minor, 1);
  EXPECT_EQ(found[1].files, (Files{"c 235:84", "c 235:85"}));
  EXPECT_EQ(found[2].files, (Files{"c 235:102", "c 235:103"}));
  fs::remove_all(folder_ / "proc");
  EXPECT_TRUE(devices()[1].files.empty());
}

TEST_F(JobsDivided, AJobOnAPartHasAWallOfHardwareWhereOthersAreDenied) {
  divide_one();
  JobRequest request;
  request.name = "test";
  request.folder = folder_.string();
  request.command = {"/bin/true"};
  request.gpu_milli = 1000;
  const Placement whole{{0, 0, 0, 1000}}, part{{0, 2, 0, 1000}};
  const auto visible = [&](const Placement& placement) {
    return rank_environment({1, 1}, request, placement, 0, 5000, devices());
  };
  EXPECT_EQ(std::ranges::count(visible(part), "CUDA_VISIBLE_DEVICES=MIG-FAKE-1-1"), 1);
  EXPECT_EQ(std::ranges::count(visible(whole), "CUDA_VISIBLE_DEVICES=FAKE-0"), 1);
  const Runner runner(folder_ / "data", false, 100, devices());
  const std::vector<std::string> walls = runner.walls();
  const bool denies = std::ranges::count(walls, "devices") > 0;
  EXPECT_EQ(runner.wall(request, part), denies ? "hardware" : "none");
  EXPECT_EQ(runner.wall(request, whole), denies ? "driver" : "none");
  // Before it has a place it may come onto either.
  EXPECT_EQ(runner.wall(request, {}), denies ? "driver" : "none");
  request.gpu_milli = 500;
  EXPECT_EQ(runner.wall(request, {{0, 2, 0, 500}}), "none");
  // Without what opens the parts, others cannot be denied them.
  fs::remove_all(folder_ / "proc");
  const Runner blind(folder_ / "data2", false, 100, devices());
  request.gpu_milli = 1000;
  EXPECT_EQ(blind.wall(request, part), "none");
}

}  // namespace
}  // namespace dais::jobs
