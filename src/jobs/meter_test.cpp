#include "jobs/meter.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dais::jobs {
namespace {

using devices::DeviceSample;

DeviceSample device(int index, std::optional<double> utilisation) {
  DeviceSample sample;
  sample.index = index;
  sample.name = "FAKE (not hardware)";
  sample.utilisation = utilisation;
  return sample;
}

TEST(JobsMeter, AddsUpWhatIsKnownToBeTrue) {
  // A load that is known in closed form, sampled as NVML would: the mean over each second.
  Meter meter;
  const double seconds = 2000;
  double energy = 0;
  for (int t = 0; t <= seconds; ++t) {
    const double busy = 0.5 + 0.4 * std::sin(t / 50.0);
    DeviceSample first = device(0, busy), second = device(1, 0.0);
    energy += t > 0 ? 100 + 200 * busy : 0;
    first.energy_j = energy;
    first.memory_used_bytes = 1'000'000 + t;
    first.sent_bytes_s = 1000;
    first.received_bytes_s = 3000;
    meter.sample(t, {first, second}, {{7, 0, 1000, {}}}, 2);
  }
  double busy_s = 0;  // the integral of the load
  busy_s = 0.5 * seconds + 0.4 * 50 * (1 - std::cos(seconds / 50));
  const Use use = *meter.use(7);
  EXPECT_NEAR(use.held_s, seconds, 1e-6);
  EXPECT_NEAR(use.kernel_s, busy_s, 0.02 * busy_s);
  EXPECT_NEAR(use.idle_s, seconds - busy_s, 0.02 * seconds);
  EXPECT_NEAR(*use.moved_bytes, 4000 * seconds, 0.02 * 4000 * seconds);
  EXPECT_NEAR(*use.energy_j, energy, 0.02 * energy);
  EXPECT_EQ(use.memory_peak_bytes, 1'000'000 + static_cast<int64_t>(seconds));
  EXPECT_EQ(use.unknown_s, 0);
  EXPECT_NEAR(meter.devices().at(1).idle_free_s, seconds, 1e-6);
  EXPECT_NEAR(meter.devices().at(0).idle_held_s, use.idle_s, 1e-6);
}

TEST(JobsMeter, WhatNobodyToldIsUnknownNotIdle) {
  Meter meter;
  for (int t = 0; t <= 10; ++t) meter.sample(t, {device(0, std::nullopt)}, {{1, 0, 1000, {}}}, 1);
  const Use use = *meter.use(1);
  EXPECT_EQ(use.unknown_s, 10);
  EXPECT_EQ(use.idle_s, 0);
  EXPECT_FALSE(use.moved_bytes || use.energy_j || use.memory_bytes);
  EXPECT_EQ(use.idle_since_s, -1);
  // Nor is a gap.
  meter.sample(100, {device(0, 0.0)}, {{1, 0, 1000, {}}}, 1);
  EXPECT_EQ(meter.use(1)->unknown_s, 100);
}

TEST(JobsMeter, SharedDevicesAreSplitByTheirProcesses) {
  Meter meter;
  DeviceSample sample = device(0, 0.9);
  sample.memory_used_bytes = 999;
  sample.energy_j = 5;
  sample.processes = {{11, 100, 0.6}, {12, 50, 0.1}, {21, 400, 0.2}, {99, 7, 0.0}};
  const std::vector<Holding> holdings = {{1, 0, 500, {11, 12}}, {2, 0, 500, {21}}};
  for (int t = 0; t <= 10; ++t) meter.sample(t, {sample}, holdings, 1);
  EXPECT_NEAR(meter.use(1)->kernel_s, 7, 1e-9);
  EXPECT_NEAR(meter.use(2)->kernel_s, 2, 1e-9);
  EXPECT_EQ(meter.use(1)->memory_bytes, 150);
  EXPECT_EQ(meter.use(2)->memory_bytes, 400);
  // What belongs to the device as a whole is nobody's part.
  EXPECT_FALSE(meter.use(1)->energy_j);
}

TEST(JobsMeter, SaysSinceWhenAHeldDeviceRunsNothing) {
  Meter meter;
  for (int t = 0; t <= 5; ++t)
    meter.sample(t, {device(0, t < 3 ? 0.5 : 0.0)}, {{1, 0, 1000, {}}}, 1);
  EXPECT_EQ(meter.use(1)->idle_since_s, 3);
  EXPECT_EQ(meter.take(1).held_s, 5);
  EXPECT_FALSE(meter.use(1));
}

}  // namespace
}  // namespace dais::jobs
