#include "train/plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "train/plot_frame.h"

namespace dais::train {
namespace {

Chart line() { return {"rate", "update", {{"rate", {0, 1, 2, 3}, {0, 1, NAN, 3}}}}; }

TEST(Plot, TextHoldsRangeAndPoints) {
  const std::string text = line().text(20, 4);
  EXPECT_NE(text.find("         3 |                   *"), std::string::npos) << text;
  EXPECT_NE(text.find("         0 |*"), std::string::npos) << text;
}

TEST(Plot, SvgBreaksCurvesAtNonNumbers) {
  const std::string svg = line().svg();
  const auto count = [&](const std::string& part) {
    size_t out = 0;
    for (size_t at = 0; (at = svg.find(part, at)) != std::string::npos; ++at) ++out;
    return out;
  };
  EXPECT_EQ(count("<circle"), 3u);  // each point of a short curve
  EXPECT_EQ(count("stroke=\"#1f77b4\" stroke-width=\"2.0\""), 1u);
}

TEST(Plot, TicksAreRoundNumbersWithinTheRange) {
  EXPECT_EQ(ticks(0, 2811), (std::vector<double>{0, 500, 1000, 1500, 2000, 2500}));
  EXPECT_EQ(ticks(-1, 1), (std::vector<double>{-1, -0.5, 0, 0.5, 1}));
}

TEST(Plot, PngIsWrittenAndOtherEndingsRefused) {
  const auto path = std::filesystem::temp_directory_path() / "dais_plot_test.png";
  write_charts(path, {line(), line()});
  const auto bytes = MappedFile::open(path);
  ASSERT_GT(bytes->bytes().size(), 100u);
  EXPECT_EQ(bytes->bytes()[1], 'P');
  std::filesystem::remove(path);
  EXPECT_THROW(write_charts("chart.gif", {line()}), Error);
}

}  // namespace
}  // namespace dais::train
