// A process that got a part of a GPU takes that many bytes and not one more.
#include "backends/cuda/memory_share.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "backends/cuda/device.h"
#include "backends/cuda/tables.h"
#include "base/error.h"

namespace dais::cuda {
namespace {

TEST(MemoryShare, ReadsPartsAndBytes) {
  constexpr size_t device = 80'000'000'000;
  EXPECT_EQ(memory_share("", 3, device), all_memory);
  EXPECT_EQ(memory_share("0.25", 0, device), 20'000'000'000u);
  EXPECT_EQ(memory_share("1,0.5,10737418240", 0, device), all_memory);
  EXPECT_EQ(memory_share("1,0.5,10737418240", 1, device), 40'000'000'000u);
  EXPECT_EQ(memory_share("1,0.5,10737418240", 2, device), 10'737'418'240u);
}

TEST(MemoryShare, WhatCannotBeReadIsNotTakenForNoLimit) {
  for (const char* list : {"0.5", "0.5,", "x,1", "0,0", "-1,1", "0.5 ,1", "nan,1", "0.5;1", ","}) {
    EXPECT_THROW(memory_share(list, 1, 1000), Error) << list;
  }
}

class MemoryShareDevice : public testing::Test {
 protected:
  void TearDown() override { unsetenv(memory_share_variable); }
  static std::shared_ptr<Device> open(const char* share) {
    setenv(memory_share_variable, share, 1);
    return Device::open(emulated_tables(), 0);
  }
};

TEST_F(MemoryShareDevice, TheLastByteIsGivenAndNoneBeyondIt) {
  const auto device = open("1000000");
  EXPECT_EQ(device->free_bytes(), 1'000'000u);
  const DevicePointer first = device->allocate(600'000, "weights", nullptr);
  const DevicePointer second = device->allocate(400'000, "activations", nullptr);
  EXPECT_EQ(device->free_bytes(), 0u);
  try {
    device->allocate(1, "a byte", nullptr);
    ADD_FAILURE() << "more than its share";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::exhausted);
    const std::string text = error.what();
    EXPECT_NE(text.find("this job may take 0.95 MiB of the device"), std::string::npos) << text;
    EXPECT_NE(text.find("weights 0.57 MiB"), std::string::npos) << text;
  }
  device->release(second, nullptr);
  EXPECT_THROW(device->allocate(400'001, "too much", nullptr), Error);
  const DevicePointer third = device->allocate(400'000, "activations", nullptr);
  device->release(first, nullptr);
  device->release(third, nullptr);
  EXPECT_EQ(device->free_bytes(), 1'000'000u);
}

TEST_F(MemoryShareDevice, ThreadsTogetherNeverHoldMore) {
  const auto device = open("1000");
  std::atomic<size_t> held{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        try {
          const DevicePointer memory = device->allocate(400, "thread", nullptr);
          EXPECT_LE(held.fetch_add(400) + 400, 1000u);
          std::this_thread::yield();
          held.fetch_sub(400);
          device->release(memory, nullptr);
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), Code::exhausted);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(device->free_bytes(), 1000u);
}

TEST_F(MemoryShareDevice, AListThatCannotBeReadOpensNoDevice) { EXPECT_THROW(open("half"), Error); }

}  // namespace
}  // namespace dais::cuda
