#include "train/events.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "base/span.h"
#include "train/crc32c.h"

namespace dais::train {
namespace {

Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

/// Fields of a protocol-buffer message.
class Message {
 public:
  void varint(int field, uint64_t value) {
    key(field, 0);
    put_varint(value);
  }
  void fixed64(int field, double value) {
    key(field, 1);
    raw(&value, sizeof value);
  }
  void fixed32(int field, float value) {
    key(field, 5);
    raw(&value, sizeof value);
  }
  void text(int field, const std::string& value) {
    key(field, 2);
    put_varint(value.size());
    bytes_ += value;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void key(int field, int wire) { put_varint(static_cast<uint64_t>(field << 3 | wire)); }
  void put_varint(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
  }
  void raw(const void* data, size_t size) { bytes_.append(static_cast<const char*>(data), size); }
  std::string bytes_;
};

// Field numbers of Event, Summary, Summary.Value and SessionLog.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
constexpr int kValue = 1, kTag = 1, kSimpleValue = 2, kStatus = 1;
constexpr uint64_t kStart = 1;

uint32_t masked_crc(Bytes bytes) {
  const uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8;
}

Message event(double seconds, int64_t step) {
  Message out;
  out.fixed64(kWallTime, seconds);
  if (step != 0) out.varint(kStep, static_cast<uint64_t>(step));
  return out;
}

std::string number(double value) {
  char out[32];
  std::snprintf(out, sizeof out, "%.9g", value);
  return out;
}

}  // namespace

std::string event_record(const std::string& message) {
  std::string out(8, '\0');
  const uint64_t length = message.size();
  std::memcpy(out.data(), &length, 8);
  const auto append = [&](uint32_t value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  append(masked_crc(bytes_of(out)));
  out += message;
  append(masked_crc(bytes_of(message)));
  return out;
}

std::string event_message(double seconds, int64_t step, const Scalars& scalars) {
  Message summary;
  for (const auto& [tag, number] : scalars) {
    Message value;
    value.text(kTag, tag);
    value.fixed32(kSimpleValue, static_cast<float>(number));
    summary.text(kValue, value.bytes());
  }
  Message out = event(seconds, step);
  out.text(kSummary, summary.bytes());
  return out.bytes();
}

EventWriter::EventWriter(const std::filesystem::path& folder, int64_t resumed_at) {
  char host[256] = "localhost";
  ::gethostname(host, sizeof host - 1);
  const std::string stem = "events.out.tfevents." +
                           std::to_string(static_cast<int64_t>(unix_seconds())) + "." + host + ".";
  std::filesystem::path path;
  for (int i = 0; path.empty() || std::filesystem::exists(path); ++i)
    path = folder / (stem + std::to_string(i));
  file_.reset(std::fopen(path.c_str(), "wb"));
  if (!file_)
    throw Error(Code::unavailable, "cannot create the event file", path.string(),
                "Check that the folder is writable");
  Message version = event(unix_seconds(), 0);
  version.text(kFileVersion, "brain.Event:2");
  record(version.bytes());
  if (resumed_at < 0) return;
  Message start;
  start.varint(kStatus, kStart);
  Message restart = event(unix_seconds(), resumed_at + 1);
  restart.text(kSessionLog, start.bytes());
  record(restart.bytes());
}

void EventWriter::write(int64_t step, const Scalars& scalars) {
  record(event_message(unix_seconds(), step, scalars));
}

void EventWriter::record(const std::string& message) {
  const std::string bytes = event_record(message);
  std::fwrite(bytes.data(), 1, bytes.size(), file_.get());
  std::fflush(file_.get());
}

CsvLog::CsvLog(std::filesystem::path path, std::vector<std::string> columns, int64_t resumed_at)
    : path_(std::move(path)), columns_(std::move(columns)) {
  std::string kept;
  for (size_t i = 0; i < columns_.size(); ++i) kept += (i ? "," : "") + columns_[i];
  kept += '\n';
  if (resumed_at >= 0) {
    std::ifstream old(path_);
    std::string line;
    if (std::getline(old, line) && line + '\n' == kept)
      // A last line that was cut off has no end and is dropped with the rest.
      while (std::getline(old, line) && !old.eof())
        if (std::atoll(line.c_str()) <= resumed_at) kept += line + '\n';
  }
  write_file(path_, kept);
}

void CsvLog::write(int64_t step, const Scalars& values) {
  std::string row = std::to_string(step);
  for (size_t i = 1; i < columns_.size(); ++i) {
    row += ',';
    for (const auto& [name, value] : values)
      if (name == columns_[i] && !std::isnan(value)) row += number(value);
  }
  std::ofstream(path_, std::ios::app) << row << '\n';
}

}  // namespace dais::train
