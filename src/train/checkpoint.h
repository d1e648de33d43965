#pragma once

#include <functional>
#include <optional>

#include "train/safetensors.h"

namespace dais::train {

/// All that a training needs to go on: tensors by name, and facts as a JSON object in text.
struct Checkpoint {
  int64_t update = 0;  ///< updates done
  std::vector<NamedTensor> tensors;
  std::string facts = "{}";
};

/// A folder of checkpoints, each a folder `update-N` with state.safetensors and facts.json, which
/// appears under its name only when it is whole and on the disk. The newest `keep` stay, and the
/// best one, named in best.json.
class CheckpointFolder {
 public:
  /// Creates the folder; removes what interrupted writes left. keep is at least 1, or kReadOnly.
  CheckpointFolder(std::filesystem::path folder, int keep);
  /// As keep: only looks; nothing is created or removed.
  static constexpr int kReadOnly = 0;

  /// Throws `exhausted` (disk full) or `unavailable`; checkpoints written before stay as they are.
  void write(const Checkpoint& checkpoint);
  /// The checkpoint of this update is the best so far.
  void set_best(int64_t update, double score);

  std::vector<int64_t> updates() const;  ///< of whole checkpoints, rising
  std::optional<std::pair<int64_t, double>> best() const;
  /// Throws `not_found`, or `invalid_model` when the files do not hold what was written.
  Checkpoint read(int64_t update) const;
  /// The newest whose bytes are what was written; damaged ones are told to `report` and passed
  /// over.
  std::optional<Checkpoint> newest(const std::function<void(const Error&)>& report = {}) const;

  const std::filesystem::path& path() const { return folder_; }

 private:
  std::filesystem::path place(int64_t update) const;
  void remove(int64_t update);
  void drop_old();

  std::filesystem::path folder_;
  int keep_;
};

}  // namespace dais::train
