#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/dataset.h"

namespace dais::data {

/// Bytes with whatever keeps them alive: a mapping, or memory.
struct Blob {
  Bytes bytes;
  std::shared_ptr<const void> owner;

  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};
Blob blob_of(std::vector<uint8_t> bytes);

/// A file mapped, or decompressed into memory when it is gzip. Throws `exhausted` when that takes
/// more than `max_bytes`, and `invalid_argument` when the compressed data is broken.
Blob load_file(const std::filesystem::path& path, size_t max_bytes);
/// A small file read at once; cheaper than a mapping. Throws like MappedFile::open.
std::vector<uint8_t> read_file(const std::filesystem::path& path);

/// One member of a zlib stream: gzip (`gzip` true) or raw deflate.
std::vector<uint8_t> inflate(Bytes compressed, bool gzip, size_t max_bytes,
                             const std::string& where);

/// Files below a folder, relative to it, in byte order of their names. Hidden ones are left out;
/// links that lead out of the folder are not followed but listed.
struct Listing {
  std::vector<std::string> files;
  std::vector<std::string> leaving;
};
Listing list_files(const std::filesystem::path& folder,
                   const std::function<bool(std::string_view)>& wanted);

/// Lower-case extension without the dot: "jpg".
std::string extension_of(std::string_view name);
bool is_image_name(std::string_view name);
bool is_audio_name(std::string_view name);
std::string lower(std::string_view text);
std::string_view trimmed(std::string_view text);
/// Lines without their ends ("\n" or "\r\n").
std::vector<std::string_view> lines_of(std::string_view text);

/// One class name a line; empty lines are left out.
std::vector<std::string> read_names(const std::filesystem::path& path);

/// Adds `count` of `what` with examples to a description, unless there are none.
void add_finding(Description& description, std::string what, std::vector<std::string> examples);
/// Reports classes without samples.
void find_empty_classes(Description& description, const std::vector<int64_t>& labels);

}  // namespace dais::data
