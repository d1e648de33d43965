#include "train/events.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "train/crc32c.h"

namespace dais::train {
namespace {

namespace fs = std::filesystem;

Bytes bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Check values of RFC 3720, appendix B.4.
TEST(Events, ChecksumsOfTheStandard) {
  EXPECT_EQ(crc32c(bytes("123456789")), 0xE3069283u);
  EXPECT_EQ(crc32c(bytes(std::string(32, '\0'))), 0x8A9136AAu);
  EXPECT_EQ(crc32c(bytes(std::string(32, '\xff'))), 0x62A8AB43u);
  EXPECT_EQ(crc32c(bytes("6789"), crc32c(bytes("12345"))), 0xE3069283u);
}

TEST(Events, MessageBytes) {
  const std::string expected(
      "\x09\0\0\0\0\0\0\xf0\x3f"  // wall_time 1
      "\x10\x05"                  // step 5
      "\x2a\x0d\x0a\x0b"          // summary, value
      "\x0a\x04loss\x15\0\0\0\x3f",
      26);  // tag, simple_value 0.5
  EXPECT_EQ(event_message(1, 5, {{"loss", 0.5}}), expected);
}

TEST(Events, RecordsCarryMaskedChecksums) {
  const std::string record = event_record("abc");
  ASSERT_EQ(record.size(), 8u + 4 + 3 + 4);
  uint32_t stored = 0;
  std::memcpy(&stored, record.data() + 15, 4);
  const uint32_t crc = crc32c(bytes("abc"));
  EXPECT_EQ(stored, (crc >> 15 | crc << 17) + 0xa282ead8);
}

TEST(Events, CsvContinuesWhereTheCheckpointStands) {
  const fs::path path = fs::temp_directory_path() / ("dais_csv_" + std::to_string(getpid()));
  {
    CsvLog log(path, {"step", "loss", "accuracy"});
    log.write(1, {{"loss", 2}});
    log.write(2, {{"loss", 1.5}, {"accuracy", 0.25}});
    log.write(3, {{"loss", 1}});
  }
  std::ofstream(path, std::ios::app) << "4,0.";
  CsvLog log(path, {"step", "loss", "accuracy"}, 2);
  log.write(3, {{"loss", 1}});
  EXPECT_EQ(contents(path), "step,loss,accuracy\n1,2,\n2,1.5,0.25\n3,1,\n");
  fs::remove(path);
}

}  // namespace
}  // namespace dais::train
