#include "onnx/tensor_proto.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace dais::onnx {
namespace {

Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

Tensor read(const std::string& bytes, TensorReader reader = TensorReader()) {
  return reader.read(parse_tensor(WireReader(bytes_of(bytes), "TensorProto")));
}

std::string typed(DType dtype, std::vector<int64_t> dims, uint32_t field,
                  std::vector<int64_t> values) {
  WireWriter out;
  out.integers(1, dims);
  out.integer(2, static_cast<int64_t>(dtype));
  out.integers(field, values);
  return out.data();
}

void expect_error(const std::string& bytes, const std::string& part) {
  try {
    read(bytes);
    FAIL() << "read it";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(TensorProto, EveryTypeComesBack) {
  for (int number = 1; number < kDTypeCount; ++number) {
    const auto dtype = static_cast<DType>(number);
    Tensor tensor(dtype, Shape{5});
    visit_storage(dtype, [&]<typename U>() {
      if constexpr (std::is_same_v<U, std::string>)
        for (int i = 0; i < 5; ++i)
          tensor.storage<U>()[i] = std::string(static_cast<size_t>(i), 'a');
      else
        std::fill_n(tensor.storage<U>(), 5, U(1));
    });
    WireWriter out;
    write_tensor(out, tensor, "t");
    EXPECT_TRUE(read(out.data()).identical(tensor)) << dtype_name(dtype);
  }
}

TEST(TensorProto, SmallIntegersAreUnpackedWithTheirSign) {
  const Tensor i4 = read(typed(DType::i4, {3}, 5, {0x8f, 0x07}));
  EXPECT_EQ(i4.data<Int4>()[0].value, -1);
  EXPECT_EQ(i4.data<Int4>()[1].value, -8);
  EXPECT_EQ(i4.data<Int4>()[2].value, 7);
  const Tensor u2 = read(typed(DType::u2, {5}, 5, {0xe4, 0x02}));
  for (uint8_t i = 0; i < 4; ++i) EXPECT_EQ(u2.data<UInt2>()[i].value, i);
  EXPECT_EQ(u2.data<UInt2>()[4].value, 2);
}

TEST(TensorProto, Float16LiesInIntegerFields) {
  const Tensor half = read(typed(DType::f16, {2}, 5, {0x3c00, 0xc000}));
  EXPECT_EQ(half.to_double(0), 1);
  EXPECT_EQ(half.to_double(1), -2);
}

TEST(TensorProto, WrongSizesAreNamed) {
  expect_error(typed(DType::i64, {3}, 7, {1, 2}), "needs 3 stored entries, the file has 2");
  expect_error(typed(DType::i64, {-3}, 7, {1, 2}), "negative");
  expect_error(typed(DType::f32, {int64_t{1} << 40, int64_t{1} << 40}, 4, {}), "too many elements");
  expect_error(typed(DType::u8, {int64_t{1} << 40}, 5, {}), "the file has 0");
  expect_error(typed(static_cast<DType>(99), {1}, 5, {1}), "element type 99");
}

std::string external(const std::string& location, const std::string& offset = "0",
                     int64_t elements = 2) {
  WireWriter out;
  out.integers(1, std::vector<int64_t>{elements});
  out.integer(2, static_cast<int64_t>(DType::u8));
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"location", location}, {"offset", offset}}) {
    WireWriter entry;
    entry.text(1, key);
    entry.text(2, value);
    out.message(13, entry);
  }
  out.integer(14, 1);
  return out.data();
}

class ExternalData : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ =
        std::filesystem::temp_directory_path() / ("dais_external_" + std::to_string(::getpid()));
    std::filesystem::create_directories(root_ / "model");
    std::ofstream(root_ / "model" / "weights") << "abcd";
    std::ofstream(root_ / "secret") << "wxyz";
    std::filesystem::create_symlink("../secret", root_ / "model" / "link");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string problem(const std::string& bytes) {
    try {
      read(bytes, TensorReader(nullptr, root_ / "model"));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  std::filesystem::path root_;
};

TEST_F(ExternalData, IsMappedFromTheFolder) {
  const Tensor tensor = read(external("weights", "1"), TensorReader(nullptr, root_ / "model"));
  EXPECT_EQ(tensor.data<uint8_t>()[0], 'b');
  EXPECT_EQ(tensor.data<uint8_t>()[1], 'c');
}

TEST_F(ExternalData, MayNotLeaveTheFolder) {
  EXPECT_NE(problem(external("../secret")).find("leaves the folder"), std::string::npos);
  EXPECT_NE(problem(external("link")).find("symbolic link"), std::string::npos);
  EXPECT_NE(problem(external((root_ / "secret").string())).find("absolute"), std::string::npos);
  EXPECT_NE(problem(external("")).find("empty"), std::string::npos);
}

TEST_F(ExternalData, PositionsAreChecked) {
  EXPECT_NE(problem(external("weights", "3")).find("lies outside"), std::string::npos);
  EXPECT_NE(problem(external("weights", "18446744073709551615")).find("lies outside"),
            std::string::npos);
  EXPECT_NE(problem(external("weights", "-1")).find("no position"), std::string::npos);
  EXPECT_NE(problem(external("nothing")).find("No such file"), std::string::npos);
}

/// Pages of memory that this process holds.
int64_t resident_pages() {
  int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident;
}

/// A sparse file; the tensor takes all of it but is neither read nor copied.
TEST_F(ExternalData, MayBeLargerThanTwoGigabytes) {
  const auto path = root_ / "model" / "weights";
  const int64_t size = (int64_t{5} << 30) + 7;
  std::error_code failed;
  std::filesystem::resize_file(path, static_cast<uint64_t>(size) + 2, failed);
  struct stat status {};
  if (failed || ::stat(path.c_str(), &status) != 0 || status.st_blocks > 2048)
    GTEST_SKIP() << "the file system of " << path << " has no sparse files of this size";
  const int64_t before = resident_pages();
  const Tensor tensor =
      read(external("weights", "1", size), TensorReader(nullptr, root_ / "model"));
  ASSERT_EQ(tensor.elements(), size);
  EXPECT_EQ(tensor.data<uint8_t>()[0], 'b');
  EXPECT_EQ(tensor.data<uint8_t>()[static_cast<size_t>(size) - 1], 0);
  EXPECT_LT((resident_pages() - before) * ::sysconf(_SC_PAGESIZE), int64_t{64} << 20);
}

TEST(TensorProto, SparseBecomesDense) {
  WireWriter values, indices, out;
  write_tensor(values, Tensor::of<float>(Shape{2}, {5, 6}), "s");
  write_tensor(indices, Tensor::of<int64_t>(Shape{2, 2}, {0, 1, 1, 0}), "");
  out.message(1, values);
  out.message(2, indices);
  out.integers(3, std::vector<int64_t>{2, 2});
  TensorReader reader;
  const auto dense =
      reader.read(parse_sparse_tensor(WireReader(bytes_of(out.data()), "SparseTensorProto")));
  EXPECT_TRUE(dense.identical(Tensor::of<float>(Shape{2, 2}, {0, 5, 6, 0})));
}

TEST(TensorProto, SequencesAndMapsComeBack) {
  const Datum sequence = Datum::sequence({Tensor::of<float>(Shape{1}, {1}), Tensor::scalar(2.f)});
  const Type type = Type::sequence(Type::tensor(DType::f32));
  TensorReader reader;
  const auto text = datum_bytes(sequence, type, "s");
  const Datum back = reader.read(bytes_of(text), type);
  ASSERT_EQ(back.items->size(), 2u);
  EXPECT_EQ((*back.items)[1].tensor.to_double(), 2);
  const Datum map =
      Datum::map(Tensor::of<int64_t>(Shape{2}, {3, 4}), Tensor::of<float>(Shape{2}, {.5f, .25f}));
  const Type map_type = Type::map(DType::i64, Type::tensor(DType::f32));
  const auto map_text = datum_bytes(map, map_type, "");
  const Datum map_back = reader.read(bytes_of(map_text), map_type);
  EXPECT_TRUE(map_back.tensor.identical(map.tensor));
  EXPECT_TRUE((*map_back.items)[0].tensor.identical((*map.items)[0].tensor));
  const Type maybe = Type::optional(Type::tensor(DType::f32));
  const auto nothing = datum_bytes(Datum(), maybe, "o");
  EXPECT_FALSE(reader.read(bytes_of(nothing), maybe).has_value());
}

}  // namespace
}  // namespace dais::onnx
