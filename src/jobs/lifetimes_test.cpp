#include "jobs/lifetimes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace dais::jobs {
namespace {

TEST(JobsLifetimes, BinsCoverTimeWithoutGaps) {
  EXPECT_EQ(lifetime_bin(0), 0);
  for (int bin = 0; bin + 1 < lifetime_bins; ++bin) {
    const double end_s = lifetime_bin_end(bin);
    EXPECT_EQ(lifetime_bin(end_s * 0.999'999), bin);
    EXPECT_EQ(lifetime_bin(end_s), bin + 1);
    EXPECT_EQ(lifetime_bin_start(bin + 1), end_s);
  }
  EXPECT_TRUE(std::isinf(lifetime_bin_end(lifetime_bins - 1)));
}

TEST(JobsLifetimes, SizeClassesDouble) {
  auto size = [](int tasks, int64_t milli) { return size_class({tasks, {milli, 0, 0}, true}); };
  EXPECT_EQ(size(1, 0), 0);
  EXPECT_EQ(size(1, 200), 1);
  EXPECT_EQ(size(1, 1000), 1);
  EXPECT_EQ(size(2, 1000), 2);
  EXPECT_EQ(size(3, 1000), 3);
  EXPECT_EQ(size(4, 1000), 3);
  EXPECT_EQ(size(5, 1000), 4);
}

// With exponential lifetimes what has been attained says nothing: the index is the rate itself.
TEST(JobsLifetimes, IndexOfExponentialLifetimesIsTheirRate) {
  const double mean_s = 2000;
  std::mt19937_64 random(3);
  std::exponential_distribution<double> draw(1 / mean_s);
  Lifetimes lifetimes;
  for (int i = 0; i < 200'000; ++i) {
    const double lasted_s = draw(random);
    lifetimes.spent(0, 1, 0, lasted_s);
    lifetimes.completed(0, 1, lasted_s);
  }
  const Outlook outlook = lifetimes.outlook(0, 1);
  for (double attained_s : {0.0, 500.0, 2000.0, 5000.0}) {
    EXPECT_NEAR(outlook[lifetime_bin(attained_s)] * mean_s, 1, 0.04) << attained_s;
  }
  EXPECT_NEAR(lifetimes.completion_chance(0, 1, 0, mean_s), 1 - std::exp(-1), 0.01);
  EXPECT_NEAR(lifetimes.completion_chance(0, 1, 3000, mean_s), 1 - std::exp(-1), 0.02);
}

TEST(JobsLifetimes, IndexFallsForHeavyTailsAndRisesForFixedLengths) {
  Lifetimes lifetimes;
  for (int i = 0; i < 10'000; ++i) {
    const double heavy_s = 60 / std::pow((i + 0.5) / 10'000, 1.5);
    lifetimes.spent(0, 1, 0, heavy_s);
    lifetimes.completed(0, 1, heavy_s);
    lifetimes.spent(1, 1, 0, 3600 + i % 60);
    lifetimes.completed(1, 1, 3600 + i % 60);
  }
  const Outlook heavy = lifetimes.outlook(0, 1), fixed = lifetimes.outlook(1, 1);
  EXPECT_GT(heavy[lifetime_bin(60)], 4 * heavy[lifetime_bin(6000)]);
  EXPECT_LT(fixed[lifetime_bin(60)], fixed[lifetime_bin(2500)]);
}

TEST(JobsLifetimes, RunningJobsCountWithTheTimeTheySpent) {
  Lifetimes finished, censored;
  for (int i = 0; i < 1000; ++i) {
    for (Lifetimes* lifetimes : {&finished, &censored}) {
      lifetimes->spent(0, 1, 0, 100);
      lifetimes->completed(0, 1, 100);
    }
    censored.spent(0, 1, 0, 10'000);
  }
  const int bin = lifetime_bin(50);
  EXPECT_GT(finished.outlook(0, 1)[bin], 1.5 * censored.outlook(0, 1)[bin]);
}

}  // namespace
}  // namespace dais::jobs
