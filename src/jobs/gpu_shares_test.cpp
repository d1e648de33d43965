#include "jobs/gpu_shares.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "jobs/executor.h"
#include "jobs/runner.h"

namespace dais::jobs {
namespace {

namespace fs = std::filesystem;

JobRequest listing(const std::vector<DevicePart>& parts) {
  JobRequest request;
  request.name = "test";
  request.command = {"/bin/true"};
  request.folder = "/tmp";
  request.gpu_parts = parts;
  request.gpu_milli = 0;
  for (const DevicePart& part : parts) request.gpu_milli += part.gpu_milli;
  return request;
}

TEST(JobsGpuShares, TheRuntimeIsToldInTheOrderOfTheDevices) {
  JobRequest request;
  request.gpu_milli = 250;
  const Placement third{{0, 3, 0, 250}};
  EXPECT_EQ(runtime_limits(shares_of(request, third, 0)), "0.250");
  request.gpu_mib = 10'240;
  EXPECT_EQ(runtime_limits(shares_of(request, third, 0)), "10737418240");
  request = listing({{500, 0}, {1000, 0}, {125, 2048}});
  const Placement placement{{0, 2, 0, 1000}, {0, 0, 0, 500}, {0, 1, 0, 125},
                            {0, 3, 1, 1000}, {0, 4, 1, 500}, {0, 5, 1, 125}};
  for (const int task : {0, 1}) {
    EXPECT_EQ(runtime_limits(shares_of(request, placement, task)), "1,0.500,2147483648");
  }
}

TEST(JobsGpuShares, MpsIsToldWhatIsKnown) {
  const std::vector<DeviceShare> shares = {{2, 1000, 0}, {0, 500, 0}, {1, 125, 2048}};
  EXPECT_EQ(mps_limits(shares, {{0, 81'920}, {1, 81'920}, {2, 81'920}}), "1=40960M,2=2048M");
  EXPECT_EQ(mps_limits(shares, {}), "2=2048M");
  EXPECT_EQ(mps_limits({{0, 1000, 0}}, {{0, 81'920}}), "");
}

std::vector<std::string> environment_of(const JobRequest& request, const Placement& placement) {
  return rank_environment({1, 1}, request, placement, 0, 5000);
}

TEST(JobsGpuShares, WhoSharesADeviceDoesNotChooseHowMuch) {
  JobRequest request = listing({{500, 0}, {250, 0}});
  request.environment["DAIS_GPU_MEMORY"] = "1,1";
  const auto variables = environment_of(request, {{0, 1, 0, 500}, {0, 0, 0, 250}});
  EXPECT_EQ(std::ranges::count(variables, "DAIS_GPU_MEMORY=0.500,0.250"), 1);
  EXPECT_EQ(std::ranges::count(variables, "CUDA_VISIBLE_DEVICES=1,0"), 1);
  EXPECT_EQ(std::ranges::count(variables, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50"), 1);
  JobRequest whole = listing({});
  whole.gpu_milli = 1000;
  for (const std::string& variable : environment_of(whole, {{0, 0, 0, 1000}})) {
    EXPECT_FALSE(variable.starts_with("DAIS_GPU_MEMORY") || variable.starts_with("CUDA_MPS"))
        << variable;
  }
}

// The wall of a job is named by what is known of its program, and no better.
TEST(JobsGpuShares, OnlyThisProgramIsKnownToKeepToItsPart) {
  const fs::path folder = fs::temp_directory_path() / ("dais_shares_" + std::to_string(getpid()));
  fs::create_directories(folder / "mps");
  setenv("CUDA_MPS_PIPE_DIRECTORY", (folder / "mps").c_str(), 1);
  {
    const Runner runner(folder);
    JobRequest request;
    request.name = "test";
    request.folder = folder.string();
    request.gpu_milli = 500;
    request.command = {fs::read_symlink("/proc/self/exe").string(), "train"};
    EXPECT_EQ(runner.wall(request, {}), "runtime");
    std::ofstream(folder / "mps" / "control") << "";
    EXPECT_EQ(runner.wall(request, {}), "driver");
    JobRequest other = request;
    other.command = {"/bin/sh", "-c", request.command[0]};
    EXPECT_EQ(runner.wall(other, {}), "none");
    other = request;
    other.command.emplace_back("--ops=mine");
    EXPECT_EQ(runner.wall(other, {}), "none");
    for (const char* name : {"LD_PRELOAD", "DAIS_CUDA_LIBRARIES", "CUDA_VISIBLE_DEVICES"}) {
      other = request;
      other.environment[name] = "x";
      EXPECT_EQ(runner.wall(other, {}), "none") << name;
    }
    other = request;
    other.environment["DAIS_PARAM_lr"] = "0.1";
    EXPECT_EQ(runner.wall(other, {}), "driver");
    other.command[0] = "dais-that-is-nowhere";
    EXPECT_EQ(runner.wall(other, {}), "none");
  }
  unsetenv("CUDA_MPS_PIPE_DIRECTORY");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace dais::jobs
