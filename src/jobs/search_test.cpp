#include "jobs/search.h"

#include <gtest/gtest.h>

namespace dais::jobs {
namespace {

TEST(JobsSearch, ReadsReportsOfWholeLinesOnly) {
  size_t read = 0;
  const std::string text =
      "begin\ndais-report 10 0.5\ndais-report 11 nan\ndais-report x 1\n dais-report 1 1\n"
      "dais-report 12 -2e-3\r\ndais-report 13 1y\ndais-report 20 0.2";
  EXPECT_EQ(reports_in(text, read), (std::vector<Report>{{10, 0.5}, {12, -2e-3}}));
  EXPECT_EQ(text.substr(read), "dais-report 20 0.2");
}

TEST(JobsSearch, RungsGrowByTheFactor) {
  EXPECT_EQ(rung_after(0, 4, 3), 4);
  EXPECT_EQ(rung_after(4, 4, 3), 12);
  EXPECT_EQ(rung_after(100, 4, 3), 108);
  EXPECT_EQ(rung_after(3, 1, 1.5), 5);  // 1, 2, 3, 5
  EXPECT_EQ(rung_after(INT64_MAX, 1, 2), INT64_MAX);
}

// By hand: of seven values the best third, rounded up, is three.
TEST(JobsSearch, TheBestPartGoesOn) {
  const std::vector<double> values = {1, 2, 3, 4, 5, 6, 7};
  EXPECT_FALSE(stops_at_rung(values, 3, 3, false));
  EXPECT_TRUE(stops_at_rung(values, 4, 3, false));
  EXPECT_FALSE(stops_at_rung(values, 5, 3, true));
  EXPECT_TRUE(stops_at_rung(values, 4, 3, true));
  EXPECT_FALSE(stops_at_rung({9, 1}, 9, 3, false));  // two are too few to say
  EXPECT_FALSE(stops_at_rung({2, 2, 2, 2}, 2, 3, false));
}

}  // namespace
}  // namespace dais::jobs
