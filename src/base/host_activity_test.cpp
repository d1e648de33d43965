#include "base/host_activity.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "base/span.h"

namespace dais {
namespace {

TEST(HostActivities, AreRecordedOfAllThreadsWhileSomebodyRecords) {
  const HostStretch before(HostActivity::run);
  HostRecorder recorder;
  EXPECT_TRUE(recorder.take().empty()) << "it began before";
  const double begin = steady_seconds();
  std::thread([] { const HostStretch stretch(HostActivity::wait_for_data); }).join();
  { const HostStretch stretch(HostActivity::run); }
  const auto found = recorder.take();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].what, HostActivity::wait_for_data);
  EXPECT_EQ(found[1].what, HostActivity::run);
  EXPECT_GE(found[0].start, begin);
  EXPECT_GE(found[1].start, found[0].start + found[0].seconds);
  EXPECT_TRUE(recorder.take().empty()) << "each is given once";
}

TEST(HostActivities, WhatGoesOnIsGivenInPiecesWithoutGapsOrOverlaps) {
  HostRecorder recorder;
  std::optional<HostStretch> stretch(std::in_place, HostActivity::wait_for_data);
  const auto first = recorder.take(), second = recorder.take();
  stretch.reset();
  const auto third = recorder.take();
  ASSERT_EQ(first.size() + second.size() + third.size(), 3u);
  EXPECT_DOUBLE_EQ(first[0].start + first[0].seconds, second[0].start);
  EXPECT_DOUBLE_EQ(second[0].start + second[0].seconds, third[0].start);
}

TEST(HostActivities, AStretchMayEndBehindItsRecorder) {
  std::optional<HostRecorder> recorder(std::in_place);
  std::optional<HostStretch> stretch(std::in_place, HostActivity::run);
  recorder.reset();
  recorder.emplace();
  stretch.reset();
  EXPECT_TRUE(recorder->take().empty());
}

}  // namespace
}  // namespace dais
