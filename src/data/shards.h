#pragma once

#include <filesystem>
#include <functional>

#include "data/dataset.h"

namespace dais::data {

/// The file beside shards that describes them; see docs/data.md.
inline constexpr const char* kShardIndex = "shards.json";

enum class Encoding {
  keep,    ///< the bytes of the source's own files where no size is asked for, png otherwise
  png,     ///< lossless
  jpg,     ///< lossy
  pixels,  ///< npy of the pixels: the fastest to read, the largest
};

struct BuildOptions {
  Encoding encoding = Encoding::keep;
  bool resized = false;  ///< the dataset was opened with a size, so that `keep` may not copy files
  int quality = 90;      ///< of jpg
  uint64_t shard_bytes = uint64_t{256} << 20;
  /// Called now and then with samples done and samples in all.
  std::function<void(int64_t, int64_t)> progress;
};

struct BuildResult {
  int64_t samples = 0, shards = 0;
  uint64_t bytes = 0;
  Finding unreadable;  ///< samples left out, with reasons
};

/// Writes a dataset as tar shards into `folder`, which is made and must not hold shards yet. The
/// index comes last, so that a build that was killed is not taken for a whole one. Same samples,
/// same bytes.
BuildResult build_shards(const Dataset& dataset, const std::filesystem::path& folder,
                         const BuildOptions& options);

/// Reads all shards and compares their checksums with the index. Returns the files that differ.
std::vector<std::string> verify_shards(const std::filesystem::path& folder);

Task task_from_name(std::string_view name);
InputKind input_kind_from_name(std::string_view name);

}  // namespace dais::data
