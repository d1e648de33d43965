#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "jobs/account.h"

namespace dais::jobs {

/// Bounds on what is kept of one job.
struct ArtefactLimits {
  uint64_t bytes = uint64_t{1} << 30;
  size_t files = 10'000;
  size_t looked_at = 1'000'000;  ///< names in folders that patterns reach into
  int depth = 64;
};

struct KeptFile {
  std::string path;  ///< in the working folder
  uint64_t bytes = 0;
};

struct LeftOut {
  std::string path, why;
};

/// What became of the files that a job asked to keep.
struct Artefacts {
  enum class State {
    absent,   ///< nothing was kept: it has not ended, never began, or the disk was full
    keeping,  ///< they are being copied
    kept,
  };
  State state = State::absent;
  std::vector<KeptFile> files;
  std::vector<LeftOut> left_out;  ///< the first hundred
};

/// What is wrong with patterns: one line each. A pattern is a path in the working folder, whose
/// parts may hold *, ? and [a-z]; ** stands for any number of folders, and a folder for all in it.
std::vector<std::string> pattern_problems(const std::vector<std::string>& patterns);

/// Copies the files below `from` that patterns name into the folder `to`, which must be empty.
/// Symbolic links are neither followed nor copied, and no more is anything but files; what was left
/// out is said. With a reader, whatever is opened below `from` is opened as him, which takes root
/// and a process of one thread. Throws unavailable when `from` cannot be read or `to` not be
/// written, exhausted on a full disk.
Artefacts copy_artefacts(const std::filesystem::path& from,
                         const std::vector<std::string>& patterns, const std::filesystem::path& to,
                         const ArtefactLimits& limits, const std::optional<Account>& reader);

/// Keeps artefacts in a data folder. What is to be kept is written down before the end of the job
/// is; the copying is done by a process of its own that outlives the daemon, and another daemon
/// starts it again where that process died too.
class ArtefactKeeper {
 public:
  ArtefactKeeper(std::filesystem::path folder, const ArtefactLimits& limits);

  struct Order {
    int64_t job = 0;
    std::filesystem::path from;
    std::vector<std::string> patterns;
    std::optional<Account> reader;
  };
  /// Notes that a job has artefacts to be kept. False when the disk is full.
  bool promise(int64_t job) const;
  /// Begins to copy. Nothing happens where somebody does it already.
  void keep(const Order& order) const;
  /// Jobs whose artefacts were promised and are not kept yet.
  std::vector<int64_t> promised() const;
  void forget(int64_t job) const;

  /// Safe from any thread.
  Artefacts read(int64_t job) const;
  /// A descriptor to read a kept file from. Throws not_found for any path that is not listed.
  int open(int64_t job, const std::string& path) const;

 private:
  std::filesystem::path promise_folder(int64_t job) const;
  std::filesystem::path kept_folder(int64_t job) const;
  void copy(const Order& order, int lock) const;

  std::filesystem::path folder_;
  ArtefactLimits limits_;
};

}  // namespace dais::jobs
