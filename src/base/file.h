#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace dais {

using Bytes = std::span<const uint8_t>;

/// A whole file mapped read-only. Pages are read when touched; the mapping lives as long as the
/// last shared_ptr. A file that another process shortens meanwhile faults, as with any mapping.
class MappedFile {
 public:
  /// Throws `not_found` when there is no such regular file, `unavailable` when it cannot be read.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;

  Bytes bytes() const { return {data_, size_}; }

  /// Lets the pages of part of any live mapping leave the process; they come back when touched.
  /// Memory that is no such mapping is left alone.
  static void release(const void* data, size_t size);

 private:
  MappedFile(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  const uint8_t* data_;
  size_t size_;
};

/// Writes a file under a temporary name beside it and renames it on commit(), so that readers see
/// the old contents or the new ones, never a part. Without commit() nothing stays.
/// Every function throws `unavailable` or `exhausted` naming the path.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;

  void write(Bytes bytes);
  void pad_to(size_t alignment);  ///< zero bytes up to a multiple
  uint64_t position() const { return position_; }
  /// `durable`: contents and name outlast a power cut when this returns.
  void commit(bool durable = false);

 private:
  [[noreturn]] void fail(const char* action) const;

  std::filesystem::path path_, temporary_;
  int descriptor_ = -1;
  uint64_t position_ = 0;
};

/// Makes the names in a folder (files created, renamed and removed) outlast a power cut.
/// Throws `unavailable` naming the folder.
void sync_folder(const std::filesystem::path& folder);

/// AtomicFile with one piece of contents.
void write_file(const std::filesystem::path& path, std::string_view contents);

/// The path of `relative` inside `folder`, for names that come from untrusted files. Throws
/// `invalid_model` when it is empty, absolute, holds "..", or leaves the folder by a symbolic link.
std::filesystem::path confined_path(const std::filesystem::path& folder, std::string_view relative);

}  // namespace dais
