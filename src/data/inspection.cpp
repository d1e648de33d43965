#include "data/inspection.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "base/threads.h"
#include "data/augment.h"
#include "data/hash.h"

namespace dais::data {
namespace {

/// What one sample adds. Kept per sample, so that sums do not depend on the number of threads.
struct Look {
  bool readable = false;
  std::string reason;
  Shape shape;
  std::vector<double> sums, squares;  ///< of each channel or column, and how many values
  int64_t values = 0;
  std::vector<std::pair<int64_t, int64_t>> classes;
  Sha256::Digest digest{};
};

void add_statistics(const Tensor& input, InputKind kind, Look& look) {
  const bool image = kind == InputKind::image;
  if (!image && input.dtype() != DType::f32) return;
  if (input.rank() < 1 || kind == InputKind::array) return;
  const auto columns = static_cast<size_t>(input.shape().back());
  look.sums.assign(columns, 0);
  look.squares.assign(columns, 0);
  const auto count = static_cast<size_t>(input.elements());
  for (size_t i = 0; i < count; ++i) {
    const double value = image ? input.storage<uint8_t>()[i] / 255.0
                               : static_cast<double>(input.storage<float>()[i]);
    look.sums[i % columns] += value;
    look.squares[i % columns] += value * value;
  }
  look.values = columns > 0 ? static_cast<int64_t>(count / columns) : 0;
}

void add_classes(const Sample& sample, Task task, Look& look) {
  std::map<int64_t, int64_t> counts;
  if (task == Task::classification) ++counts[sample.target.data<int64_t>()[0]];
  if (task == Task::detection)
    for (const int64_t label : sample.classes.data<int64_t>()) ++counts[label];
  if (task == Task::segmentation)
    for (const uint8_t level : sample.target.data<uint8_t>())
      if (level != kIgnoredPixel) ++counts[level];
  look.classes.assign(counts.begin(), counts.end());
}

class Inspector {
 public:
  Inspector(const Dataset& dataset, const InspectionOptions& options)
      : dataset_(dataset), options_(options), about_(dataset.description()) {
    result_.samples = dataset.size();
    if (about_.task == Task::classification || about_.task == Task::detection ||
        about_.task == Task::segmentation)
      result_.class_counts.assign(static_cast<size_t>(about_.class_count), 0);
    digests_.resize(static_cast<size_t>(dataset.size()));
  }

  Inspection run() {
    constexpr int64_t kPiece = 512;
    for (int64_t begin = 0; begin < result_.samples; begin += kPiece) {
      const int64_t end = std::min(result_.samples, begin + kPiece);
      look_at(begin, end);
      if (options_.progress) options_.progress(end, result_.samples);
    }
    finish_statistics();
    if (options_.duplicates) find_duplicates();
    result_.findings = about_.findings;
    report();
    return std::move(result_);
  }

 private:
  void look_at(int64_t begin, int64_t end) {
    std::vector<Look> looks(static_cast<size_t>(end - begin));
    std::vector<Tensor> images(looks.size());
    parallel_for(end - begin, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        look_at_one(begin + i, looks[static_cast<size_t>(i)], images[static_cast<size_t>(i)]);
    });
    for (size_t i = 0; i < looks.size(); ++i)
      add(begin + static_cast<int64_t>(i), looks[i], images[i]);
  }

  void look_at_one(int64_t index, Look& look, Tensor& image) const {
    try {
      const Sample sample = dataset_.read(index);
      look.shape = sample.input.shape();
      add_statistics(sample.input, about_.input, look);
      add_classes(sample, about_.task, look);
      if (about_.input == InputKind::image) image = sample.input;
      if (options_.duplicates) look.digest = sha256(dataset_.raw(index).bytes);
      look.readable = true;
    } catch (const std::exception& error) {
      look.reason = error.what();
    }
  }

  void add(int64_t index, const Look& look, const Tensor& image) {
    if (!look.readable) {
      result_.unreadable.push_back({index, dataset_.name(index), look.reason});
      return;
    }
    digests_[static_cast<size_t>(index)] = look.digest;
    for (const auto& [label, count] : look.classes)
      if (label >= 0 && label < static_cast<int64_t>(result_.class_counts.size()))
        result_.class_counts[static_cast<size_t>(label)] += count;
    add_sizes(look.shape);
    if (sums_.empty()) {
      sums_.assign(look.sums.size(), 0);
      squares_ = sums_;
    }
    if (sums_.size() == look.sums.size()) {
      for (size_t c = 0; c < sums_.size(); ++c) {
        sums_[c] += look.sums[c];
        squares_[c] += look.squares[c];
      }
      values_ += look.values;
    }
    if (image) add_image(image);
    ++result_.readable;
  }

  void add_sizes(const Shape& shape) {
    if (result_.readable == 0)
      for (const int64_t size : shape)
        result_.sizes.push_back({static_cast<double>(size), static_cast<double>(size), 0});
    if (shape.rank() != result_.sizes.size()) return;
    for (size_t axis = 0; axis < shape.rank(); ++axis) {
      Range& range = result_.sizes[axis];
      const auto size = static_cast<double>(shape[axis]);
      range.low = std::min(range.low, size);
      range.high = std::max(range.high, size);
      range.mean += size;
    }
  }

  void add_image(const Tensor& image) {
    const auto count = static_cast<size_t>(image.elements());
    if (result_.readable == 0) {
      image_shape_ = image.shape();
      image_sums_.assign(count, 0);
    }
    one_size_ = one_size_ && image.shape() == image_shape_;
    if (!one_size_) return;
    for (size_t i = 0; i < count; ++i) image_sums_[i] += image.storage<uint8_t>()[i];
  }

  void finish_statistics() {
    const auto readable = static_cast<double>(std::max<int64_t>(1, result_.readable));
    for (Range& range : result_.sizes) range.mean /= readable;
    if (values_ > 0)
      for (size_t c = 0; c < sums_.size(); ++c) {
        const double mean = sums_[c] / static_cast<double>(values_);
        result_.mean.push_back(mean);
        result_.deviation.push_back(
            std::sqrt(std::max(0.0, squares_[c] / static_cast<double>(values_) - mean * mean)));
      }
    if (image_sums_.empty() || !one_size_) return;
    const int64_t channels = image_shape_[2], plane = image_shape_[0] * image_shape_[1];
    result_.mean_image = Tensor(DType::f32, {channels, image_shape_[0], image_shape_[1]});
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < plane; ++i)
        result_.mean_image.storage<float>()[c * plane + i] =
            static_cast<float>(image_sums_[static_cast<size_t>(i * channels + c)] / readable / 255);
  }

  void find_duplicates() {
    std::map<Sha256::Digest, std::vector<int64_t>> groups;
    std::vector<bool> broken(digests_.size());
    for (const auto& bad : result_.unreadable) broken[static_cast<size_t>(bad.index)] = true;
    for (size_t i = 0; i < digests_.size(); ++i)
      if (!broken[i]) groups[digests_[i]].push_back(static_cast<int64_t>(i));
    for (auto& [digest, indices] : groups) {
      if (indices.size() < 2) continue;
      Duplicates found{std::move(indices), false};
      for (const int64_t index : found.indices)
        found.labels_differ |= dataset_.label(index) != dataset_.label(found.indices[0]);
      result_.duplicates.push_back(std::move(found));
    }
    std::sort(result_.duplicates.begin(), result_.duplicates.end(),
              [](const auto& a, const auto& b) { return a.indices[0] < b.indices[0]; });
  }

  void add_finding(const std::string& what, const std::vector<std::string>& all) {
    if (all.empty()) return;
    constexpr size_t kShown = 5;
    Finding finding{what, static_cast<int64_t>(all.size()), all};
    if (all.size() > kShown) finding.examples.resize(kShown);
    result_.findings.push_back(std::move(finding));
  }

  void report() {
    std::vector<std::string> unreadable, same, differing;
    for (const auto& bad : result_.unreadable) unreadable.push_back(bad.reason);
    for (const auto& group : result_.duplicates)
      (group.labels_differ ? differing : same)
          .push_back(dataset_.name(group.indices[0]) + " and " + dataset_.name(group.indices[1]));
    add_finding("unreadable sample", unreadable);
    add_finding("same content under different labels", differing);
    add_finding("same content twice", same);
    if (about_.input == InputKind::image && !one_size_)
      result_.findings.push_back(
          {"images of different sizes", result_.readable, {"give one size, such as --size 32x32"}});
  }

  const Dataset& dataset_;
  const InspectionOptions& options_;
  const Description& about_;
  Inspection result_;
  std::vector<Sha256::Digest> digests_;
  std::vector<double> sums_, squares_, image_sums_;
  int64_t values_ = 0;
  Shape image_shape_;
  bool one_size_ = true;
};

}  // namespace

Inspection inspect(const Dataset& dataset, const InspectionOptions& options) {
  return Inspector(dataset, options).run();
}

}  // namespace dais::data
