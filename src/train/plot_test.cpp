#include "train/plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"

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
  size_t paths = 0;
  for (size_t at = 0; (at = svg.find("<polyline", at)) != std::string::npos; ++at) ++paths;
  EXPECT_EQ(paths, 2u);
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
