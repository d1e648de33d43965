#pragma once

#include "data/dataset.h"
#include "data/files.h"

namespace dais::data {

// One function per format. Each throws `invalid_argument` naming the file and what is wrong.

DatasetPtr open_image_folder(const std::filesystem::path& folder, const OpenOptions& options);
DatasetPtr open_image_list(const std::filesystem::path& list, const OpenOptions& options);
DatasetPtr open_masks(const std::filesystem::path& folder, const OpenOptions& options);
DatasetPtr open_kitti(const std::filesystem::path& folder, const OpenOptions& options);
DatasetPtr open_coco(const std::filesystem::path& path, const OpenOptions& options);
DatasetPtr open_idx(const std::filesystem::path& path, const OpenOptions& options);
DatasetPtr open_cifar(const std::filesystem::path& path, const OpenOptions& options);
DatasetPtr open_csv(const std::filesystem::path& path, const OpenOptions& options);
DatasetPtr open_numpy(const std::filesystem::path& path, const OpenOptions& options);
DatasetPtr open_audio_folder(const std::filesystem::path& folder, const OpenOptions& options);
DatasetPtr open_speech(const std::filesystem::path& path, const OpenOptions& options);
DatasetPtr open_text(const std::filesystem::path& path, const OpenOptions& options);
DatasetPtr open_shards(const std::filesystem::path& path, const OpenOptions& options);
DatasetPtr open_subset(const std::filesystem::path& path, const OpenOptions& options);

// The parsers of single binary files, apart from the file system, so that they can be fuzzed.

/// An IDX array: u8 stays u8, i8, i16, i32, f32 and f64 turn from big-endian.
Tensor parse_idx(const Blob& file, const std::string& where);

/// A member of a zip archive (stored or deflated), in the order of its directory.
struct ZipMember {
  std::string name;
  Blob data;
};
std::vector<ZipMember> parse_zip(const Blob& file, size_t max_bytes, const std::string& where);

/// A regular file in a tar archive (ustar, GNU and pax names); `data` points into the archive.
struct TarMember {
  std::string name;
  Bytes data;
};
std::vector<TarMember> parse_tar(Bytes file, const std::string& where);

/// Rows of a table: fields apart by `delimiter`, quoted ones may hold anything (RFC 4180).
/// Calls row(number, fields); the views last for that call.
void parse_csv(std::string_view text, char delimiter, const std::string& where,
               const std::function<void(int64_t, std::span<const std::string_view>)>& row);

}  // namespace dais::data
