#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "data/augment.h"
#include "data/dataset.h"

namespace dais::data {

/// Samples side by side. Images are f32 [N, C, H, W] after normalisation; features f32 [N, T, F]
/// (or [N, 1, F, T]), tokens i64 [N, T], rows f32 [N, F], arrays [N, …] of their element type.
/// Shorter sequences are filled up with zeros.
struct Batch {
  Tensor input;
  /// classification i64 [N]; with mixup f32 [N, classes] instead; regression f32 [N, K];
  /// segmentation i64 [N, H, W] (-100 where none counts); detection f32 [N, M, 4];
  /// transcription i64 [N, L]; next_token i64 [N, T] (-100 beyond the end).
  Tensor target;
  Tensor classes;                ///< detection: i64 [N, M], -1 beyond an image's boxes
  Tensor input_lengths;          ///< i64 [N] where lengths vary
  Tensor target_lengths;         ///< transcription: i64 [N]
  std::vector<int64_t> indices;  ///< of the dataset
  int64_t epoch = 0, step = 0;   ///< step within the epoch
  int64_t global_size = 0;       ///< samples of this step on all ranks
  bool last_of_epoch = false;

  int64_t size() const { return static_cast<int64_t>(indices.size()); }
};

enum class LastBatch {
  keep,  ///< a shorter batch at the end; with several ranks its samples are dealt out evenly
  drop,  ///< the samples that do not fill a global batch wait for another epoch
};

enum class FeatureLayout { time_major, image };  ///< [N, T, F] or [N, 1, F, T]

struct LoaderOptions {
  int64_t batch = 32;  ///< samples a step on this rank
  uint64_t seed = 0;
  bool shuffle = true;
  LastBatch last = LastBatch::drop;
  Augment augment;
  bool augment_samples = true;  ///< false: evaluation, only the middle crop is taken
  Normalise normalise;
  int rank = 0, ranks = 1;
  /// Batches of similar length: samples are sorted by length within runs of so many global batches
  /// of the shuffled order, and the batches shuffled again. 0: no.
  int64_t bucket_batches = 0;
  int64_t pad_multiple = 1;  ///< padded lengths are rounded up to a multiple
  FeatureLayout features = FeatureLayout::time_major;
  /// Threads that decode ahead of the step; 0: none, next() decodes on the compute pool; -1:
  /// chosen.
  int workers = -1;
  int64_t ahead = 4;                       ///< batches kept ready at most
  size_t ahead_bytes = size_t{512} << 20;  ///< and bytes of them
};

/// Where the time went since the loader was made.
struct LoaderTimes {
  double waited_s = 0;   ///< next() held the caller up
  double decoded_s = 0;  ///< work of decoding and augmenting, over all threads
  int64_t samples = 0, batches = 0;
};

/// An endless stream of batches, epoch after epoch, that is a pure function of the dataset, the
/// options and the position: threads decide when a batch is made, never what it holds.
/// One thread calls; a sample that cannot be decoded is thrown by the next() that needs it.
class Loader {
 public:
  Loader(DatasetPtr dataset, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;

  const Dataset& dataset() const;
  const LoaderOptions& options() const;
  /// Steps of a whole epoch. Throws at construction when it would be 0.
  int64_t steps_per_epoch() const;

  Batch next();
  /// Decodes on the compute pool, between two steps, when the queue runs low. Does nothing where
  /// worker threads do that.
  void top_up();

  /// Where the next batch begins, as JSON: seed, epoch, samples of the epoch already dealt out on
  /// all ranks, size and fingerprint of the dataset. The same on every rank.
  std::string position() const;
  /// Goes on from a position, also one written with another number of ranks or another batch size.
  /// Throws `invalid_argument` when it belongs to another dataset or seed.
  void seek(std::string_view position);
  void seek_epoch(int64_t epoch);

  LoaderTimes times() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace dais::data
