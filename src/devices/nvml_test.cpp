#include "devices/nvml.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace dais::devices {
namespace {

namespace fs = std::filesystem;

std::string stand_in() {
  return (fs::read_symlink("/proc/self/exe").parent_path() / "dais_fake_nvml.so").string();
}

class DevicesNvml : public testing::Test {
 protected:
  void SetUp() override {
    path_ = fs::temp_directory_path() / ("dais_nvml_" + std::to_string(getpid()));
    setenv("DAIS_FAKE_NVML", path_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("DAIS_FAKE_NVML");
    fs::remove(path_);
  }
  void tell(const std::string& lines) const { std::ofstream(path_) << lines; }

  fs::path path_;
};

TEST_F(DevicesNvml, ItsAbsenceIsSaid) {
  try {
    const Nvml nvml("libnvidia-ml-of-nobody.so.1");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unavailable);
    EXPECT_NE(error.problem().find("libnvidia-ml-of-nobody"), std::string::npos);
  }
  // The library is there, the driver is not.
  try {
    const Nvml nvml(stand_in());
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.problem().find("Driver Not Loaded"), std::string::npos) << error.what();
  }
}

TEST_F(DevicesNvml, TellsWhatTheDeviceTells) {
  tell(
      "0 utilisation 73\n0 memory_total 8000000000\n0 memory_used 3000000000\n0 sent 2000\n"
      "0 memory_reserved 500000000\n0 core_clock 1980\n0 memory_clock 2619\n0 xid 0\n"
      "0 ecc_corrected 5\n0 ecc_uncorrected 0\n"
      "0 received 500\n0 power 250500\n0 energy 9000\n0 temperature 61\n"
      "0 process 41 1000 60\n0 process 42 18446744073709551615 13\n1 utilisation 0\n");
  const Nvml nvml(stand_in());
  ASSERT_EQ(nvml.devices(), 2);
  const DeviceSample sample = nvml.sample(0);
  EXPECT_NE(sample.name.find("not hardware"), std::string::npos);
  EXPECT_EQ(sample.utilisation, 0.73);
  EXPECT_EQ(sample.memory_total_bytes, 8'000'000'000);
  EXPECT_EQ(sample.memory_used_bytes, 3'000'000'000);
  EXPECT_EQ(sample.memory_reserved_bytes, 500'000'000);
  EXPECT_EQ(sample.memory_free_bytes, 4'500'000'000);
  EXPECT_EQ(sample.core_clock_mhz, 1980.0);
  EXPECT_EQ(sample.memory_clock_mhz, 2619.0);
  EXPECT_EQ(sample.ecc_corrected, 5);
  EXPECT_EQ(sample.ecc_uncorrected, 0);
  EXPECT_EQ(sample.xid, 0);
  EXPECT_EQ(sample.sent_bytes_s, 2000 * 1024.0);
  EXPECT_EQ(sample.received_bytes_s, 500 * 1024.0);
  EXPECT_EQ(sample.power_w, 250.5);
  EXPECT_EQ(sample.energy_j, 9.0);
  EXPECT_EQ(sample.temperature_c, 61.0);
  ASSERT_TRUE(sample.processes && sample.processes->size() == 2);
  EXPECT_EQ(sample.processes->at(0).memory_bytes, 1000);
  EXPECT_EQ(sample.processes->at(0).utilisation, 0.6);
  // What the driver marks as unknown is missing.
  EXPECT_FALSE(sample.processes->at(1).memory_bytes);
  EXPECT_TRUE(sample.missing.empty());
}

TEST_F(DevicesNvml, WhatIsMissingIsMissingNotZero) {
  tell("0 utilisation 0\n1 utilisation error\n");
  const Nvml nvml(stand_in());
  EXPECT_EQ(nvml.sample(0).utilisation, 0.0);
  const DeviceSample sample = nvml.sample(1);
  EXPECT_FALSE(sample.utilisation);
  EXPECT_FALSE(sample.memory_used_bytes || sample.power_w || sample.energy_j ||
               sample.sent_bytes_s || sample.memory_free_bytes || sample.memory_reserved_bytes);
  EXPECT_FALSE(sample.core_clock_mhz || sample.memory_clock_mhz || sample.ecc_corrected ||
               sample.ecc_uncorrected || sample.xid);
  EXPECT_NE(std::find(sample.missing.begin(), sample.missing.end(), "utilisation: Unknown Error"),
            sample.missing.end());
  EXPECT_NE(std::find(sample.missing.begin(), sample.missing.end(), "power: Not Supported"),
            sample.missing.end());
  EXPECT_THROW(nvml.sample(7), Error);
}

TEST_F(DevicesNvml, PartsOfADividedDeviceStandForIt) {
  tell(
      "0 utilisation 5\n1 mig 7\n1 minor 4\n1 memory_total 80\n"
      "1 mig0.memory_total 10\n1 mig0.memory_used 3\n1 mig0.gpu_instance 9\n"
      "1 mig0.process 41 2 60\n"
      "1 mig3.memory_total 20\n1 mig3.memory_used 0\n1 mig3.gpu_instance 2\n1 "
      "mig3.compute_instance 1\n2 mig 7\n");
  const Nvml nvml(stand_in());
  // The third is divided into nothing: there is nothing to be given.
  const std::vector<Unit> units = nvml.units();
  ASSERT_EQ(units.size(), 3U);
  EXPECT_EQ(units[0].part, -1);
  EXPECT_EQ(units[0].uuid, "FAKE-0");
  EXPECT_EQ(units[1].part, 0);
  EXPECT_EQ(units[1].minor, 4);
  EXPECT_EQ(units[1].gpu_instance, 9);
  EXPECT_EQ(units[2].part, 3);
  EXPECT_EQ(units[2].uuid, "MIG-FAKE-1-3");
  EXPECT_EQ(units[2].compute_instance, 1);
  ASSERT_EQ(nvml.devices(), 3);
  EXPECT_EQ(nvml.sample(0).utilisation, 0.05);
  const DeviceSample part = nvml.sample(1);
  EXPECT_EQ(part.index, 1);
  EXPECT_EQ(part.memory_total_bytes, 10);
  EXPECT_EQ(part.memory_used_bytes, 3);
  ASSERT_TRUE(part.processes && part.processes->size() == 1);
  // The driver tells no utilisation of a part: it is missing, not that of the whole.
  EXPECT_FALSE(part.utilisation);
  EXPECT_EQ(nvml.sample(2).memory_total_bytes, 20);
  EXPECT_THROW(nvml.sample(3), Error);
}

TEST_F(DevicesNvml, CriticalErrorsAreToldUntilAnotherComes) {
  tell("0 xid 0\n1 xid 0\n");
  const Nvml nvml(stand_in());
  EXPECT_EQ(nvml.sample(0).xid, 0);
  EXPECT_EQ(nvml.sample(1).xid, 0);
  tell("0 xid 0\n1 xid 79\n");
  EXPECT_EQ(nvml.sample(0).xid, 0);
  EXPECT_EQ(nvml.sample(1).xid, 79);
  EXPECT_EQ(nvml.sample(1).xid, 79);
  tell("0 xid 31\n1 xid 48\n");
  EXPECT_EQ(nvml.sample(1).xid, 48);
  EXPECT_EQ(nvml.sample(0).xid, 31);
}

TEST_F(DevicesNvml, MoreProcessesThanExpectedAreRead) {
  std::string lines = "0 utilisation 1\n";
  for (int pid = 1; pid <= 100; ++pid) lines += "0 process " + std::to_string(pid) + " 5 1\n";
  tell(lines);
  EXPECT_EQ(Nvml(stand_in()).sample(0).processes->size(), 100U);
}

}  // namespace
}  // namespace dais::devices
