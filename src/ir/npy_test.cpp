#include "ir/npy.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace dais {
namespace {

namespace fs = std::filesystem;

class Npy : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "dais_npy_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  fs::path path() const { return folder_ / "a.npy"; }

  /// A version 1.0 file with this header and data, padded as NumPy does.
  void write(std::string header, const std::string& data) {
    header.append(63 - (10 + header.size()) % 64, ' ');
    header += '\n';
    std::string bytes("\x93NUMPY\x01\x00", 8);
    bytes += static_cast<char>(header.size() & 0xff);
    bytes += static_cast<char>(header.size() >> 8);
    write_bytes(bytes + header + data);
  }
  void write_bytes(const std::string& bytes) { std::ofstream(path(), std::ios::binary) << bytes; }
  void refused(const std::string& part) {
    try {
      read_npy(path());
      ADD_FAILURE() << "read, but should hold: " << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }

  fs::path folder_;
};

TEST_F(Npy, EveryTypeThatNumpyHasComesBackAsItWas) {
  int types = 0;
  for (int number = 1; number < kDTypeCount; ++number) {
    const auto dtype = static_cast<DType>(number);
    if (!npy_has(dtype)) continue;
    ++types;
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 0, 4}, Shape{2, 3, 4}}) {
      Tensor tensor(dtype, shape);
      for (size_t i = 0; i < tensor.bytes(); ++i)
        tensor.storage<uint8_t>()[i] = static_cast<uint8_t>(dtype == DType::boolean ? i % 2 : i);
      write_npy(path(), tensor);
      EXPECT_TRUE(read_npy(path()).identical(tensor)) << tensor.describe();
    }
  }
  EXPECT_EQ(types, 14);
  EXPECT_THROW(write_npy(path(), Tensor(DType::bf16, {1})), Error);
}

TEST_F(Npy, ABooleanThatIsNeitherZeroNorOneIsTrueAsInNumpy) {
  write_npy(path(), Tensor(DType::boolean, {4}));
  std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-4, std::ios::end);
  file.write("\x20\x00\xff\x01", 4);
  file.close();
  const Tensor read = read_npy(path());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(read.storage<uint8_t>()[i], i == 1 ? 0 : 1) << i;
}

TEST_F(Npy, DataBeginsAtAMultipleOf64) {
  write_npy(path(), Tensor(DType::u8, {5}));
  EXPECT_EQ(fs::file_size(path()) % 64, 5u);
}

TEST_F(Npy, FortranOrderIsTurned) {
  write("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }",
        std::string("\x00\x03\x01\x04\x02\x05", 6));
  EXPECT_TRUE(read_npy(path()).identical(Tensor::of<uint8_t>({2, 3}, {0, 1, 2, 3, 4, 5})));
}

TEST_F(Npy, OtherSpellingsOfAHeaderAreRead) {
  write("{\"descr\": 1}", "");
  refused("descr");
  write("{'shape': (1,), 'fortran_order': False, 'descr': '=i2'}", std::string("\x05\x00", 2));
  EXPECT_TRUE(read_npy(path()).identical(Tensor::of<int16_t>({1}, {5})));
}

TEST_F(Npy, HostileFilesAreRefused) {
  write_bytes("");
  EXPECT_THROW(read_npy(path()), Error);
  write_bytes(std::string("\x93NUMPY\x01\x00\xff\xff{", 11));
  refused("ends early");
  write_bytes(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12));
  refused("ends early");
  write("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "12345678");
  refused("needs more data");
  write("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "");
  refused("shape");
  write("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "1234");
  refused("element type");
  write("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "12345678");
  refused("element type");
  write("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "");
  refused("shape");
  write("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "");
  EXPECT_THROW(read_npy(path()), Error);
  write("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1), }",
        "1234");
  EXPECT_THROW(read_npy(path()), Error);
}

}  // namespace
}  // namespace dais
