#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/options.h"
#include "ir/tensor.h"

namespace dais::data {

/// What the samples are for; it decides what `Sample::target` holds.
enum class Task {
  classification,  ///< target i64 []: a class number
  regression,      ///< target f32 [K]
  segmentation,    ///< target u8 [H, W]: a class number per pixel, 255 where none counts
  detection,       ///< target f32 [n, 4]: x1 y1 x2 y2 in pixels of the input; classes i64 [n]
  transcription,   ///< target i64 [L]: token numbers from 1; 0 is the blank of CTC
  next_token,      ///< target i64 [T]: the input moved on by one token
  none,            ///< no target
};
std::string_view task_name(Task task);

/// What the input is; it decides which augmentations apply.
enum class InputKind {
  image,     ///< u8 [H, W, C], rows from the top, channels side by side
  features,  ///< f32 [T, F]: T differs from sample to sample
  tokens,    ///< i64 [T]
  row,       ///< f32 [F]
  array,     ///< any element type and shape, the same for every sample
};
std::string_view input_kind_name(InputKind kind);

/// One decoded sample.
struct Sample {
  Tensor input;
  Tensor target;   ///< absent for Task::none
  Tensor classes;  ///< detection only
};

/// A sample as it lies on disk, for copies and for finding duplicates.
struct RawSample {
  Bytes bytes;
  std::string extension;  ///< "jpg", "png", "wav"; empty where the bytes are no file of their own
  std::shared_ptr<const void> owner;  ///< keeps `bytes` alive
};

/// Something wrong with the data that does not stop it from opening.
struct Finding {
  std::string what;                   ///< "unreadable file", "empty class", …
  int64_t count = 0;                  ///< how many there are
  std::vector<std::string> examples;  ///< the first few, each with its reason
};

/// Facts known without decoding.
struct Description {
  std::string format;  ///< "image folder", "idx", "cifar", "csv", …
  std::string found;   ///< one sentence: what was recognised, and by what
  Task task = Task::none;
  InputKind input = InputKind::array;
  Shape input_shape;                 ///< of one sample; size 0 marks an axis that varies
  std::vector<std::string> classes;  ///< names of classes, or of tokens (transcription, characters)
  int64_t class_count = 0;       ///< classes, tokens of the vocabulary, or targets of a regression
  double seconds_per_frame = 0;  ///< features only
  std::vector<Finding> findings;
};

/// Samples with random access. Everything is const and may be called from several threads.
class Dataset {
 public:
  virtual ~Dataset() = default;

  const Description& description() const { return description_; }
  virtual int64_t size() const = 0;
  /// Decodes one sample. Throws `invalid_argument` naming the sample when it is unreadable.
  virtual Sample read(int64_t index) const = 0;
  /// The class of a sample without decoding it; -1 where the task has none.
  virtual int64_t label(int64_t) const { return -1; }
  /// Where a sample comes from: a path, or a file and a row.
  virtual std::string name(int64_t index) const = 0;
  virtual RawSample raw(int64_t index) const = 0;
  /// Frames or tokens of the input where they are known without decoding; 0 otherwise.
  virtual int64_t length(int64_t) const { return 0; }

 protected:
  Description description_;
};

using DatasetPtr = std::shared_ptr<const Dataset>;

/// Opens the data at `path` (a folder or a file), finding its format by looking at it unless the
/// options name one. Throws `not_found`, or `invalid_argument` saying what was looked for.
DatasetPtr open_dataset(const std::filesystem::path& path, const OpenOptions& options = {});

/// The samples of `indices`, in that order. Classes and vocabulary stay those of the whole.
DatasetPtr subset(DatasetPtr dataset, std::vector<int64_t> indices);

/// The same samples decoded once and kept, as far as `limit_bytes` reach.
DatasetPtr cached(DatasetPtr dataset, size_t limit_bytes);

/// Seeded parts of [0, size): fractions[i] of each class goes to part i + 1, the rest to part 0.
/// Each part is in rising order.
std::vector<std::vector<int64_t>> stratified_parts(const Dataset& dataset,
                                                   std::span<const double> fractions,
                                                   uint64_t seed);

}  // namespace dais::data
