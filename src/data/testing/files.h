#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "data/files.h"
#include "ir/npy.h"

namespace dais::data {

/// A folder that lasts for one test.
class DataTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "dais_data_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::filesystem::path write(const std::string& name, const std::string& contents) const {
    const auto path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << contents;
    return path;
  }
  std::filesystem::path copy(const std::string& golden, const std::string& name) const {
    const auto path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::filesystem::copy_file("tests/golden/data/" + golden, path);
    return path;
  }

  std::filesystem::path folder_;
};

inline std::string golden_path(const std::string& name) { return "tests/golden/data/" + name; }
inline Blob golden_file(const std::string& name) {
  return load_file(golden_path(name), size_t{1} << 30);
}
inline Tensor golden(const std::string& name) { return read_npy(golden_path(name)); }

/// The call throws an Error whose text holds `part`.
template <typename Call>
void expect_refused(const Call& call, const std::string& part) {
  try {
    call();
    ADD_FAILURE() << "accepted, but should be refused with: " << part;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

}  // namespace dais::data
