#include <gtest/gtest.h>

#include "jobs/activity.h"
#include "jobs/quarantine.h"

namespace dais::jobs {
namespace {

devices::DeviceSample using_bytes(int device, int64_t bytes) {
  devices::DeviceSample sample;
  sample.index = device;
  sample.memory_used_bytes = bytes;
  return sample;
}

constexpr int64_t gib = 1 << 30;

TEST(JobsQuarantine, MemoryThatNobodyHoldsClosesADeviceUntilItIsFree) {
  Quarantine quarantine;
  quarantine.sample(0, {using_bytes(0, 500 << 20), using_bytes(1, 500 << 20)}, {});
  quarantine.sample(1, {using_bytes(0, 9 * gib), using_bytes(1, 9 * gib)}, {0, 1});
  // Its job ended: it may take a moment.
  quarantine.sample(2, {using_bytes(0, 9 * gib), using_bytes(1, 9 * gib)}, {1});
  EXPECT_TRUE(quarantine.closed().empty());
  quarantine.sample(4, {using_bytes(0, 9 * gib), using_bytes(1, 9 * gib)}, {1});
  ASSERT_EQ(quarantine.closed().size(), 1U);
  EXPECT_EQ(quarantine.closed().at(0), 9 * gib - (500 << 20));
  // What it does not tell does not free it.
  devices::DeviceSample silent;
  quarantine.sample(5, {silent}, {1});
  EXPECT_TRUE(quarantine.closed().contains(0));
  quarantine.sample(6, {using_bytes(0, 510 << 20)}, {1});
  EXPECT_TRUE(quarantine.closed().empty());
}

TEST(JobsQuarantine, AProcessOfSomebodyElseCountsFromTheFirstSample) {
  Quarantine quarantine;
  devices::DeviceSample sample = using_bytes(0, 9 * gib);
  sample.processes = {{4711, 8 * gib, std::nullopt}};
  quarantine.sample(0, {sample}, {});
  quarantine.sample(3, {sample}, {});
  ASSERT_TRUE(quarantine.closed().contains(0));
  EXPECT_EQ(quarantine.closed().at(0), 8 * gib);
}

TEST(JobsActivity, AJobIsQuietOnlyWhenEverythingSaysSo) {
  Activity activity;
  const auto look = [&](double at_s, const Signs& signs) {
    activity.look(1, at_s, signs);
    return activity.quiet_s(1, at_s);
  };
  EXPECT_EQ(activity.quiet_s(1, 100), 0);
  EXPECT_EQ(look(0, {10, 5.0, false, true}), 0);
  EXPECT_EQ(look(10, {10, 5.01, false, true}), 10);  // a thousandth of a core only waits
  EXPECT_EQ(look(20, {10, 5.02, false, true}), 20);
  EXPECT_EQ(look(30, {11, 5.03, false, true}), 0);  // it printed
  EXPECT_EQ(look(40, {11, 5.04, true, true}), 0);   // a kernel ran
  EXPECT_EQ(look(50, {11, 9.0, false, true}), 0);   // it computed
  EXPECT_EQ(look(60, {11, 9.0, false, true}), 10);
  EXPECT_EQ(look(70, {11, std::nullopt, false, true}), 0);  // nobody measures its CPU time
  EXPECT_EQ(look(80, {11, 9.0, std::nullopt, true}), 0);
  EXPECT_EQ(look(90, {11, 9.0, std::nullopt, true}), 0);     // nor its GPU
  EXPECT_EQ(look(100, {11, 9.0, std::nullopt, false}), 10);  // it has none
  activity.forget(1);
  EXPECT_EQ(activity.quiet_s(1, 200), 0);
}

}  // namespace
}  // namespace dais::jobs
