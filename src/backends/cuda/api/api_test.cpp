#include <gtest/gtest.h>

#include <cstring>

#include "backends/cuda/api/driver.h"
#include "backends/cuda/api/nvrtc.h"

namespace dais::cuda {
namespace {

TEST(CudaLibraries, MissingLibraryIsReported) {
  const std::vector<std::string> files{"libnowhere.so.1"};
  const Library library("nowhere", files, "Install nowhere");
  EXPECT_FALSE(library.usable());
  EXPECT_NE(library.report().problem.find("libnowhere.so.1"), std::string::npos);
  EXPECT_EQ(library.report().remedy, "Install nowhere");
}

TEST(CudaLibraries, MissingSymbolIsReported) {
  const std::vector<std::string> files{"libc.so.6"};
  Library library("C", files, "");
  ASSERT_TRUE(library.usable());
  size_t (*length)(const char*) = nullptr;
  library.find("strlen", length);
  ASSERT_TRUE(library.usable());
  EXPECT_EQ(length("four"), 4U);
  library.find("cuNothing", length);
  EXPECT_FALSE(library.usable());
  EXPECT_NE(library.report().problem.find("cuNothing"), std::string::npos);
}

TEST(CudaLibraries, DriverIsUsableOrSaysWhyNot) {
  const auto driver = load_driver();
  EXPECT_EQ(driver.report.usable(), driver.report.remedy.empty());
  if (driver.report.usable()) {
    EXPECT_EQ(result_name(driver.api, DriverResult::out_of_memory), "CUDA_ERROR_OUT_OF_MEMORY");
  }
}

TEST(CudaLibraries, NvrtcFollowsTheDriver) {
  const auto none = load_nvrtc(11000);
  EXPECT_FALSE(none.report.usable());
  const auto any = load_nvrtc(0);
  if (!any.report.usable()) GTEST_SKIP() << any.report.problem;
  EXPECT_FALSE(any.report.version.empty());
  EXPECT_NE(any.api.create_program, nullptr);
}

TEST(CudaLibraries, VersionsReadAsTheToolkitWritesThem) {
  EXPECT_EQ(version_text(13000), "13.0");
  EXPECT_EQ(version_text(12080), "12.8");
}

}  // namespace
}  // namespace dais::cuda
