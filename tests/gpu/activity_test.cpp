// What CUPTI records, from a library of the tests: read by its layout, put on our clock, and summed
// up into what the device did and why it was idle.
#include "backends/cuda/activity.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "backends/cuda/use_meter.h"
#include "base/error.h"
#include "base/host_activity.h"
#include "base/span.h"

namespace dais::cuda {
namespace {

using devices::process_uses;

constexpr size_t kRecordBytes = 216;  // the largest

/// The library's side: what it will deliver, and how it was used.
struct Fake {
  std::vector<uint8_t> records;
  CuptiRequest request = nullptr;
  CuptiComplete complete = nullptr;
  std::vector<CuptiKind> enabled;
  CuptiResult of_enable = CuptiResult::success;
};
Fake fake;

template <typename T>
void put(size_t record, size_t byte, T value) {
  std::memcpy(fake.records.data() + record * kRecordBytes + byte, &value, sizeof value);
}

size_t add(CuptiKind kind, const CuptiLayout& layout, uint64_t start, uint64_t end,
           uint32_t stream) {
  const size_t record = fake.records.size() / kRecordBytes;
  fake.records.resize(fake.records.size() + kRecordBytes, 0xEE);
  put(record, 0, kind);
  put(record, layout.start, start);
  put(record, layout.end, end);
  put(record, layout.stream, stream);
  if (layout.device != 0) put(record, layout.device, uint32_t{0});
  return record;
}

CuptiApi table() {
  CuptiApi api = {};
  api.get_result_string = [](CuptiResult, const char** text) {
    *text = "a refusal of the tests";
    return CuptiResult::success;
  };
  api.get_timestamp = [](uint64_t* nanoseconds) {
    *nanoseconds = 1'000'000'000;
    return CuptiResult::success;
  };
  api.enable = [](CuptiKind kind) {
    fake.enabled.push_back(kind);
    return fake.of_enable;
  };
  api.disable = [](CuptiKind kind) {
    std::erase(fake.enabled, kind);
    return CuptiResult::success;
  };
  api.register_callbacks = [](CuptiRequest request, CuptiComplete complete) {
    fake.request = request;
    fake.complete = complete;
    return CuptiResult::success;
  };
  api.flush_all = [](uint32_t) {
    uint8_t* buffer = nullptr;
    size_t bytes = 0, most = 0;
    fake.request(&buffer, &bytes, &most);
    EXPECT_LE(fake.records.size(), bytes);
    std::ranges::copy(fake.records, buffer);
    fake.complete(nullptr, 0, buffer, bytes, fake.records.size());
    return CuptiResult::success;
  };
  api.next_record = [](uint8_t* buffer, size_t valid, void** record) {
    auto* at = static_cast<uint8_t*>(*record);
    at = at ? at + kRecordBytes : buffer;
    if (at + kRecordBytes > buffer + valid) return CuptiResult::max_limit_reached;
    *record = at;
    return CuptiResult::success;
  };
  return api;
}

double explained(const DeviceUse& use) {
  return use.kernels + use.copies + use.synchronising + use.waiting_for_data + use.nothing_queued;
}

class Activities : public testing::Test {
 protected:
  void SetUp() override { fake = {}; }
  const CuptiApi api_ = table();
};

TEST_F(Activities, AreReadAndPutOnOurClock) {
  static const char* const name = "softmax_rows";
  // Seconds 1.001 to 1.003 of the library's clock, which reads 1 when recording begins.
  put(add(CuptiKind::concurrent_kernel, kCuptiKernel, 1'001'000'000, 1'003'000'000, 7),
      kCuptiKernelName, name);
  const size_t copy = add(CuptiKind::copy, kCuptiMemory, 1'000'500'000, 1'001'500'000, 7);
  put(copy, kCuptiCopyKind, uint8_t{1});
  put(copy, kCuptiBytes, uint64_t{4096});
  const size_t back = add(CuptiKind::copy, kCuptiMemory, 1'004'000'000, 1'005'000'000, 7);
  put(back, kCuptiCopyKind, uint8_t{2});
  put(back, kCuptiBytes, uint64_t{100});
  add(CuptiKind::synchronization, kCuptiSynchronization, 1'002'000'000, 1'006'000'000, 7);
  add(static_cast<CuptiKind>(99), kCuptiKernel, 0, 0, 0);  // of no interest

  const double before = steady_seconds();
  ActivityRecorder recorder(api_);
  EXPECT_EQ(fake.enabled.size(), 4u);
  const auto found = recorder.stop();
  const double after = steady_seconds();
  EXPECT_TRUE(fake.enabled.empty());
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].kind, Activity::Kind::to_device);
  EXPECT_EQ(found[0].bytes, 4096u);
  EXPECT_EQ(found[1].name, "softmax_rows");
  EXPECT_EQ(found[1].stream, 7u);
  EXPECT_GE(found[1].start, before + 0.001 - 1e-6);
  EXPECT_LE(found[1].start, after + 0.001 + 1e-6);
  EXPECT_NEAR(found[1].seconds, 0.002, 1e-9);

  const double zero = found[1].start - 0.001;  // the library's second 1
  const DeviceUse use = device_use(found, 0, zero, zero + 0.010);
  EXPECT_NEAR(use.kernels, 0.002, 1e-7);
  EXPECT_NEAR(use.copies, 0.0015, 1e-7);        // 0.5 ms before the kernel, 1 ms behind it
  EXPECT_NEAR(use.synchronising, 0.002, 1e-7);  // 3 to 4 ms and 5 to 6 ms
  EXPECT_NEAR(use.nothing_queued, 0.0045, 1e-7);
  EXPECT_NEAR(explained(use), use.seconds, 1e-9);
  EXPECT_EQ(use.to_device_bytes, 4096);
  EXPECT_EQ(use.from_device_bytes, 100);
}

TEST_F(Activities, OverlappingKernelsCountOnce) {
  std::vector<Activity> list(3);
  list[0].device = list[1].device = 0;
  list[2].device = 1;
  list[2].start = 8;
  list[2].seconds = 1;
  list[0].start = 1;
  list[0].seconds = 3;
  list[1].start = 2;
  list[1].seconds = 4;
  EXPECT_DOUBLE_EQ(device_use(list, 0, 0, 10).kernels, 5);
  EXPECT_DOUBLE_EQ(device_use(list, 0, 3, 5).kernels, 2);
  EXPECT_DOUBLE_EQ(device_use(list, 1, 0, 10).kernels, 1);
}

TEST_F(Activities, EachReasonHasWhatTheOnesBeforeItLeave) {
  const auto one = [](Activity::Kind kind, int device, double start, double seconds) {
    Activity out;
    out.kind = kind;
    out.device = device;
    out.start = start;
    out.seconds = seconds;
    return out;
  };
  using Kind = Activity::Kind;
  // A kernel from 1 to 3, a copy to 4, the host waits to 6, has no data from 5 to 8.
  const std::vector<Activity> list{one(Kind::kernel, 0, 1, 2), one(Kind::to_device, 0, 2, 2),
                                   one(Kind::wait, Activity::kAny, 2, 4),
                                   one(Kind::data, Activity::kAny, 5, 3),
                                   one(Kind::kernel, Activity::kCpu, 0, 0.5)};
  const DeviceUse use = device_use(list, 0, 0, 10);
  EXPECT_DOUBLE_EQ(use.kernels, 2);
  EXPECT_DOUBLE_EQ(use.copies, 1);
  EXPECT_DOUBLE_EQ(use.synchronising, 2);
  EXPECT_DOUBLE_EQ(use.waiting_for_data, 2);
  EXPECT_DOUBLE_EQ(use.nothing_queued, 3);
  const DeviceUse cpu = device_use(list, Activity::kCpu, 0, 10);
  EXPECT_DOUBLE_EQ(cpu.kernels, 0.5);
  EXPECT_DOUBLE_EQ(cpu.synchronising, 4);
  EXPECT_DOUBLE_EQ(cpu.waiting_for_data, 2);
}

TEST_F(Activities, MissingRightsAreAnErrorWithARemedy) {
  fake.of_enable = CuptiResult::insufficient_privileges;
  try {
    ActivityRecorder recorder(api_);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unavailable);
    EXPECT_NE(error.remedy().find("NVreg_RestrictProfilingToAdminUsers"), std::string::npos);
  }
  // Nothing is left behind: another one can begin.
  fake.of_enable = CuptiResult::success;
  ActivityRecorder recorder(api_);
  EXPECT_THROW(ActivityRecorder{api_}, Error);
}

class UseMeters : public Activities {
 protected:
  void SetUp() override {
    Activities::SetUp();
    folder_ = std::filesystem::path(testing::TempDir()) / "dais_device_use";
    std::filesystem::remove_all(folder_);
    library_.api = api_;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  /// What is published, once it is.
  std::vector<devices::ProcessUse> wait() const {
    for (int i = 0; i < 2000; ++i) {
      auto found = process_uses(folder_);
      if (!found.empty()) return found;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return {};
  }
  std::filesystem::path folder_;
  Loaded<CuptiApi> library_;
};

TEST_F(UseMeters, PublishWhatADeviceDoesWhileTheyLive) {
  {
    add(CuptiKind::concurrent_kernel, kCuptiKernel, 1'001'000'000, 1'003'000'000, 7);
    put(0, kCuptiKernelName, static_cast<const char*>(nullptr));
    const size_t second =
        add(CuptiKind::concurrent_kernel, kCuptiKernel, 1'001'000'000, 1'003'000'000, 7);
    put(second, kCuptiKernelName, static_cast<const char*>(nullptr));
    put(second, kCuptiKernel.device, uint32_t{2});
    // Of a device that it does not know nothing is said.
    const size_t unknown =
        add(CuptiKind::concurrent_kernel, kCuptiKernel, 1'001'000'000, 1'003'000'000, 7);
    put(unknown, kCuptiKernelName, static_cast<const char*>(nullptr));
    put(unknown, kCuptiKernel.device, uint32_t{9});
    UseMeter meter(folder_, 0.01);
    meter.watch(library_, {"GPU-a", "GPU-b", "GPU-c"});
    const auto found = wait();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].pid, getpid());
    EXPECT_FALSE(found[0].program.empty());
    EXPECT_EQ(found[0].missing, "");
    ASSERT_EQ(found[0].uses.size(), 2u);
    EXPECT_EQ(found[0].uses[1].device, "GPU-c");
    EXPECT_EQ(found[0].uses[0].device, "GPU-a");
    const DeviceUse& use = found[0].uses[0].use;
    EXPECT_GT(use.seconds, 0);
    EXPECT_NEAR(explained(use), use.seconds, 1e-5);
    EXPECT_THROW(ActivityRecorder{api_}, Error) << "one at a time";
  }
  EXPECT_TRUE(process_uses(folder_).empty());
}

TEST_F(UseMeters, WhatTheCpuRunsAndWaitsForNeedsNoLibrary) {
  const UseMeter meter(folder_, 0.02);
  EXPECT_TRUE(process_uses(folder_).empty());
  const HostStretch data(HostActivity::wait_for_data);
  { const HostStretch run(HostActivity::run); }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  auto found = wait();
  // The first period that is published may have begun before.
  for (int i = 0; i < 2000 && !(found.at(0).uses.at(0).use.nothing_queued < 1e-9); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    found = wait();
  }
  EXPECT_EQ(found[0].uses.at(0).device, "CPU");
  const DeviceUse& use = found[0].uses[0].use;
  EXPECT_NEAR(use.waiting_for_data, use.seconds, 1e-5);
  EXPECT_TRUE(found[0].cores.has_value());
  EXPECT_GT(found[0].memory_bytes.value_or(0), 1 << 20);
}

TEST_F(UseMeters, SayWhyNothingIsKnown) {
  fake.of_enable = CuptiResult::insufficient_privileges;
  UseMeter meter(folder_, 0.01);
  meter.watch(library_, {"GPU-a"});
  const auto found = wait();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].missing, "CUPTI: a refusal of the tests");
}

TEST_F(UseMeters, FilesOfTheDeadAndOthersArePassedOver) {
  std::filesystem::create_directories(folder_);
  const std::string all = "program x\nat 5\ndevice GPU-a\nseconds 1\nkernels 0.5\n";
  for (const auto& [name, text] :
       std::vector<std::pair<std::string, std::string>>{{"999999999", all},
                                                        {"notes", all},
                                                        {"1", "at x\ndevice\nseconds -"},
                                                        {"2", "at 5\nseconds 1\nkernels 0.5\n"},
                                                        {"1.new", all}})
    std::ofstream(folder_ / name) << text;
  EXPECT_TRUE(process_uses(folder_).empty());
  std::ofstream(folder_ / std::to_string(getpid())) << all;
  ASSERT_EQ(process_uses(folder_).size(), 1u);
  EXPECT_EQ(process_uses(folder_)[0].uses.at(0).use.kernels, 0.5);
  EXPECT_TRUE(process_uses(folder_ / "missing").empty());
  // Nothing in it reaches a terminal but letters; what is too long ends early; pipes are not read.
  const auto mine = folder_ / std::to_string(getpid());
  std::ofstream(mine) << "program a\033[2Jb\n" + all.substr(all.find("at"));
  EXPECT_EQ(process_uses(folder_).at(0).program, "a?[2Jb");
  std::ofstream(mine) << all << std::string(size_t{1} << 20, 'x');
  EXPECT_EQ(process_uses(folder_).size(), 1u);
  std::filesystem::remove(mine);
  ASSERT_EQ(mkfifo(mine.c_str(), 0600), 0);
  EXPECT_TRUE(process_uses(folder_).empty());
}

/// The installed library is opened and told apart by its version, with and without a driver.
TEST_F(Activities, InstalledLibrary) {
  const auto library = load_cupti(0);
  if (!library.report.usable()) GTEST_SKIP() << library.report.problem;
  EXPECT_FALSE(library.report.version.empty());
  EXPECT_FALSE(load_cupti(11000).report.usable());
}

}  // namespace
}  // namespace dais::cuda
