#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dais::train {

using Scalars = std::vector<std::pair<std::string, double>>;

/// Writes a TensorBoard event file: records of length, checksum, an Event message and its checksum.
/// Each call reaches the file before it returns; a full disk loses events, never the training.
class EventWriter {
 public:
  /// A new file in the folder, named after the time. With `resumed_at` TensorBoard drops what
  /// earlier files hold from that step on.
  explicit EventWriter(const std::filesystem::path& folder, int64_t resumed_at = -1);
  void write(int64_t step, const Scalars& scalars);

 private:
  void record(const std::string& message);
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
};

/// Bytes of one record, as they stand in the file.
std::string event_record(const std::string& message);
/// An Event message with scalars; `seconds` since 1970.
std::string event_message(double seconds, int64_t step, const Scalars& scalars);

/// A table that grows by rows, one CSV file: the header is the first row's names, later rows fill
/// their columns and leave others empty.
class CsvLog {
 public:
  /// Continues a file that is there: rows whose `step` is above `resumed_at` are dropped first.
  /// `columns` begin with "step".
  CsvLog(std::filesystem::path path, std::vector<std::string> columns, int64_t resumed_at = -1);
  void write(int64_t step, const Scalars& values);

 private:
  std::filesystem::path path_;
  std::vector<std::string> columns_;
};

}  // namespace dais::train
