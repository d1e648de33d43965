#include "train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace dais::train {
namespace {

Schedule with(Policy policy, int64_t length) {
  Schedule out;
  out.policy = policy;
  out.rate = 0.1;
  out.length = length;
  set_policy_defaults(out);
  return out;
}

TEST(Schedule, StepsDownAtEachPart) {
  const Schedule s = with(Policy::step, 300);
  EXPECT_DOUBLE_EQ(s.at(0), 0.1);
  EXPECT_DOUBLE_EQ(s.at(99), 0.1);
  EXPECT_DOUBLE_EQ(s.at(100), 0.1 * 0.1);
  EXPECT_DOUBLE_EQ(s.at(200), 0.1 * std::pow(0.1, 2));
}

TEST(Schedule, MilestonesMultiply) {
  const Schedule s = with(Policy::multistep, 100);
  EXPECT_DOUBLE_EQ(s.at(49), 0.1);
  EXPECT_DOUBLE_EQ(s.at(50), 0.05);
  EXPECT_DOUBLE_EQ(s.at(85), 0.025);
}

TEST(Schedule, ClosedForms) {
  EXPECT_NEAR(with(Policy::exponential, 100).at(10), 0.1 * std::pow(0.95, 10), 1e-12);
  EXPECT_NEAR(with(Policy::inverse, 100).at(30), 0.1 / std::sqrt(1 + 0.1 * 30), 1e-12);
  EXPECT_NEAR(with(Policy::polynomial, 100).at(25), 0.1 * std::pow(0.75, 3), 1e-12);
  EXPECT_NEAR(with(Policy::sigmoid, 100).at(60), 0.1 / (1 + std::exp(0.1 * 10)), 1e-12);
  EXPECT_NEAR(with(Policy::fixed, 100).at(1000), 0.1, 0);
}

TEST(Schedule, CosineEndsAtItsFloor) {
  Schedule s = with(Policy::cosine, 101);
  s.floor = 0.001;
  EXPECT_DOUBLE_EQ(s.at(0), 0.1);
  EXPECT_NEAR(s.at(50), (0.1 + 0.001) / 2, 1e-12);
  EXPECT_NEAR(s.at(100), 0.001, 1e-12);
  EXPECT_NEAR(s.at(500), 0.001, 1e-12);
}

TEST(Schedule, OneCycleRisesAndFalls) {
  const Schedule s = with(Policy::one_cycle, 101);
  EXPECT_NEAR(s.at(0), 0.1 / 25, 1e-12);
  EXPECT_NEAR(s.at(30), 0.1, 1e-12);
  EXPECT_NEAR(s.at(100), 0.1 / 25 / 1e4, 1e-12);
}

TEST(Schedule, WarmUpRisesLinearlyBeforeAnyPolicy) {
  Schedule s = with(Policy::cosine, 110);
  s.warm_up = 10;
  EXPECT_NEAR(s.at(0), 0.01, 1e-12);
  EXPECT_NEAR(s.at(9), 0.1, 1e-12);
  EXPECT_NEAR(s.at(10), 0.1, 1e-12);
  EXPECT_LT(s.at(11), 0.1);
}

TEST(Schedule, NamesAndRangesAreChecked) {
  EXPECT_EQ(policy_from_name("one-cycle"), Policy::one_cycle);
  EXPECT_THROW(policy_from_name("cosin"), Error);
  Schedule s = with(Policy::step, 10);
  s.step = 0;
  EXPECT_THROW(s.check(), Error);
}

}  // namespace
}  // namespace dais::train
