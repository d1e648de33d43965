#include "train/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "base/file.h"

namespace dais::train {
namespace {

namespace fs = std::filesystem;

class Safetensors : public testing::Test {
 protected:
  void TearDown() override { fs::remove(path_); }
  /// A file as the format describes it: length, header, data.
  void write(const std::string& header, const std::string& data, int64_t claim = -1) {
    const uint64_t length = claim >= 0 ? static_cast<uint64_t>(claim) : header.size();
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    write_file(path_, bytes + header + data);
  }
  void refused(const std::string& header, const std::string& data, int64_t claim = -1) {
    write(header, data, claim);
    try {
      read_safetensors(path_);
      ADD_FAILURE() << "accepted: " << header;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_model) << error.what();
    }
  }
  fs::path path_ = fs::temp_directory_path() / ("dais_safetensors_" + std::to_string(getpid()));
};

TEST_F(Safetensors, WhatIsWrittenIsRead) {
  const std::vector<NamedTensor> tensors{
      {"weight", Tensor::of<float>({2, 2}, {1, 2, 3, 4})},
      {"count", Tensor::scalar<int64_t>(7)},
      {"none", Tensor(DType::f32, {0, 3})},
      {"flag", Tensor::of<bool>({1}, {true})},
  };
  write_safetensors(path_, tensors, {{"step", "12"}});
  const TensorFile file = read_safetensors(path_);
  ASSERT_EQ(file.tensors.size(), 4u);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(file.find(tensors[i].first)->identical(tensors[i].second)) << tensors[i].first;
  EXPECT_EQ(file.metadata.at("step"), "12");
}

// The example of the format's description, byte by byte.
TEST_F(Safetensors, ReadsWhatOthersWrite) {
  write(R"({"test":{"dtype":"I32","shape":[2,2],"data_offsets":[0,16]}})", std::string(16, '\0'));
  const TensorFile file = read_safetensors(path_);
  EXPECT_EQ(file.find("test")->describe(), "i32[2,2]");
}

TEST_F(Safetensors, HostileFilesAreRefused) {
  const std::string data(16, '\0');
  const auto entry = [](const std::string& shape, const std::string& offsets) {
    return R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  refused(entry("[4]", "[0,16]"), data, 1 << 30);
  refused(entry("[4]", "[0,16]"), data, -2 + (int64_t{1} << 62));
  refused("[1,2]", data);
  refused("{", data);
  refused(entry("[4]", "[0,20]"), data);
  refused(entry("[5]", "[0,16]"), data);
  refused(entry("[3]", "[0,12]"), data);
  refused(entry("[4]", "[16,0]"), data);
  refused(entry("[-4]", "[0,16]"), data);
  refused(entry("[4294967296,4294967296,4294967296]", "[0,16]"), data);
  refused(entry("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,4]", "[0,16]"), data);
  refused(entry("\"x\"", "[0,16]"), data);
  refused(R"({"a":{"dtype":"F31","shape":[4],"data_offsets":[0,16]}})", data);
  refused(R"({"a":{"shape":[4]}})", data);
  refused(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},)"
          R"("b":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})",
          data);
  refused(R"({"__metadata__":{"a":1}})", "");
  write_file(path_, "abc");
  EXPECT_THROW(read_safetensors(path_), Error);
}

}  // namespace
}  // namespace dais::train
