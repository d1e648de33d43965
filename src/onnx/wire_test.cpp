#include "onnx/wire.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace dais::onnx {
namespace {

Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

TEST(Wire, ReadsBackWhatIsWritten) {
  WireWriter nested;
  nested.text(1, "inside");
  WireWriter out;
  out.integer(1, -5);
  out.number(2, 0.5f);
  out.message(3, nested);
  const std::vector<int64_t> ints = {1, -1, 300};
  out.integers(4, ints);
  const std::string bytes = out.data();
  WireReader reader(bytes_of(bytes), "Test");
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.integer(), -5);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.number(), 0.5f);
  ASSERT_TRUE(reader.next());
  WireReader inner = reader.message("Nested");
  ASSERT_TRUE(inner.next());
  EXPECT_EQ(inner.text(), "inside");
  EXPECT_FALSE(inner.next());
  ASSERT_TRUE(reader.next());
  std::vector<int64_t> read;
  reader.append(read);
  EXPECT_EQ(read, ints);
  EXPECT_FALSE(reader.next());
}

TEST(Wire, UnpackedListsAreListsToo) {
  WireWriter out;
  out.integer(7, 3);
  out.integer(7, 4);
  const std::string bytes = out.data();
  WireReader reader(bytes_of(bytes), "Test");
  std::vector<int64_t> read;
  while (reader.next()) reader.append(read);
  EXPECT_EQ(read, (std::vector<int64_t>{3, 4}));
}

void expect_broken(const std::string& bytes, const std::string& part) {
  try {
    WireReader reader(bytes_of(bytes), "Test");
    while (reader.next()) (void)0;
    FAIL() << "read broken bytes";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_model);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Wire, BrokenBytesAreNamed) {
  expect_broken("\x80", "ends inside a number");
  expect_broken(
      "\x0a\x05"
      "ab",
      "longer than what is left");
  expect_broken(std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10), "longer than what");
  expect_broken("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "longer than ten bytes");
  expect_broken("\x0b", "wire type");
  expect_broken(std::string("\x00\x00", 2), "field number");
  expect_broken("\x0d\x01", "longer than what is left");
}

TEST(Wire, DepthIsLimited) {
  std::string bytes;
  for (int depth = 0; depth < 200; ++depth) {
    WireWriter around;
    around.text(1, bytes);
    bytes = around.data();
  }
  const auto descend = [](auto&& self, WireReader reader) -> void {
    while (reader.next()) self(self, reader.message("Nested"));
  };
  EXPECT_THROW(descend(descend, WireReader(bytes_of(bytes), "Test")), Error);
}

}  // namespace
}  // namespace dais::onnx
