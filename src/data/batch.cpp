#include "data/batch.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace dais::data {
namespace {

constexpr int64_t kIgnoredTarget = -100;

int64_t rounded_up(int64_t size, int64_t multiple) {
  return multiple > 1 ? (size + multiple - 1) / multiple * multiple : size;
}

/// The longest first axis of a part of the samples.
template <typename Part>
int64_t longest(const std::vector<Sample>& samples, const Part& part) {
  int64_t most = 0;
  for (const Sample& sample : samples) most = std::max(most, part(sample).shape()[0]);
  return most;
}

Tensor filled(const Shape& shape, int64_t value) {
  Tensor out(DType::i64, shape);
  std::fill_n(out.storage<int64_t>(), out.elements(), value);
  return out;
}

/// i64 sequences side by side, the rest of each line as it was.
template <typename Part>
void copy_lines(const std::vector<Sample>& samples, const Part& part, Tensor& out) {
  const int64_t width = out.shape()[1];
  auto* line = out.storage<int64_t>();
  for (const Sample& sample : samples) {
    const auto values = part(sample).template data<int64_t>();
    std::copy(values.begin(), values.end(), line);
    line += width;
  }
}

template <typename Part>
Tensor lengths_of(const std::vector<Sample>& samples, const Part& part) {
  std::vector<int64_t> lengths;
  for (const Sample& sample : samples) lengths.push_back(part(sample).shape()[0]);
  return Tensor::ints(lengths);
}

const Tensor& input_of(const Sample& sample) { return sample.input; }
const Tensor& target_of(const Sample& sample) { return sample.target; }
const Tensor& classes_of(const Sample& sample) { return sample.classes; }

/// Samples of one shape side by side.
template <typename Part>
Tensor stack(const std::vector<Sample>& samples, const Part& part) {
  const Tensor& first = part(samples.front());
  Shape shape{static_cast<int64_t>(samples.size())};
  for (const int64_t size : first.shape()) shape.push_back(size);
  Tensor out(first.dtype(), shape);
  auto* to = out.storage<std::byte>();
  for (const Sample& sample : samples) {
    const Tensor& value = part(sample);
    if (!(value.shape() == first.shape()) || value.dtype() != first.dtype())
      throw Error(Code::invalid_argument,
                  "samples of " + first.describe() + " and " + value.describe() +
                      " do not fit into one batch",
                  {}, "Give one size to all of them");
    if (value.bytes() > 0) std::memcpy(to, value.raw(), value.bytes());
    to += value.bytes();
  }
  return out;
}

/// [N, T, F] or [N, 1, F, T] of utterances of different lengths; zeros beyond their ends.
Tensor stack_features(const std::vector<Sample>& samples, const LoaderOptions& options) {
  const int64_t frames = rounded_up(longest(samples, input_of), options.pad_multiple);
  const auto count = static_cast<int64_t>(samples.size());
  const int64_t bins = samples.front().input.shape()[1];
  const bool image = options.features == FeatureLayout::image;
  Tensor out(DType::f32, image ? Shape{count, 1, bins, frames} : Shape{count, frames, bins});
  auto* to = out.storage<float>();
  std::fill_n(to, out.elements(), 0.0F);
  for (const Sample& sample : samples) {
    const auto from = sample.input.data<float>();
    if (!image) std::copy(from.begin(), from.end(), to);
    for (int64_t t = 0; image && t < sample.input.shape()[0]; ++t)
      for (int64_t f = 0; f < bins; ++f)
        to[f * frames + t] = from[static_cast<size_t>(t * bins + f)];
    to += frames * bins;
  }
  return out;
}

}  // namespace

BatchMaker::BatchMaker(const Dataset& dataset, const LoaderOptions& options)
    : dataset_(dataset), options_(options), training_(options.augment_samples) {
  const Description& about = dataset.description();
  if (about.input == InputKind::image) {
    image_ = augmented_shape(about.input_shape, options.augment);
    writer_ = ImageWriter(options.normalise, image_);
  }
  const bool classes = about.task == Task::classification && about.class_count > 0;
  if (options.augment.mixup > 0 && (!classes || about.input == InputKind::tokens))
    throw Error(Code::invalid_argument, "mixup needs numbers as input and classes as targets",
                about.format, "Leave mixup out");
}

BatchMaker::Work BatchMaker::begin(StepPlan plan) const {
  Work work;
  work.samples.resize(plan.indices.size());
  if (image_.rank() == 3)
    work.images = Tensor(
        DType::f32, {static_cast<int64_t>(plan.indices.size()), image_[2], image_[0], image_[1]});
  work.plan = std::move(plan);
  return work;
}

void BatchMaker::make_sample(Work& work, int64_t place) const {
  const auto at = static_cast<size_t>(place);
  const int64_t index = work.plan.indices[at];
  Draws draws(Purpose::sample, options_.seed, work.plan.epoch, index);
  Sample sample = augment_sample(dataset_.read(index), dataset_.description(), options_.augment,
                                 training_, draws);
  if (image_.rank() == 3) {
    if (!(sample.input.shape() == image_))
      throw Error(
          Code::invalid_argument,
          "an image of " + sample.input.shape().text() + " among images of " + image_.text(),
          dataset_.name(index), "Give one size to all of them");
    float* to = work.images.storage<float>() + place * image_.elements();
    if (training_ && options_.augment.noise_sd != 0)
      writer_.write_noisy(sample.input, options_.augment.noise_sd, draws, to);
    else
      writer_.write(sample.input, to);
    sample.input = {};
  }
  work.samples[at] = std::move(sample);
}

void BatchMaker::standardise(Tensor& rows) const {
  const auto& mean = options_.normalise.mean;
  const auto& deviation = options_.normalise.deviation;
  const auto columns = static_cast<size_t>(rows.shape().back());
  const auto values = rows.data<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t column = i % columns;
    if (column < mean.size()) values[i] -= mean[column];
    if (column < deviation.size() && deviation[column] != 0) values[i] /= deviation[column];
  }
}

void BatchMaker::collate_input(Work& work, Batch& batch) const {
  const auto& samples = work.samples;
  const Description& about = dataset_.description();
  switch (about.input) {
    case InputKind::image: batch.input = std::move(work.images); return;
    case InputKind::features:
      batch.input = stack_features(samples, options_);
      batch.input_lengths = lengths_of(samples, input_of);
      return;
    case InputKind::tokens: {
      const int64_t width = rounded_up(longest(samples, input_of), options_.pad_multiple);
      batch.input = filled({batch.size(), width}, 0);
      copy_lines(samples, input_of, batch.input);
      if (about.input_shape[0] == 0) batch.input_lengths = lengths_of(samples, input_of);
      return;
    }
    case InputKind::row:
      batch.input = stack(samples, input_of);
      standardise(batch.input);
      return;
    case InputKind::array: batch.input = stack(samples, input_of); return;
  }
}

void BatchMaker::collate_boxes(Work& work, Batch& batch) const {
  const int64_t most = longest(work.samples, classes_of);
  batch.classes = filled({batch.size(), most}, -1);
  copy_lines(work.samples, classes_of, batch.classes);
  batch.target = Tensor(DType::f32, {batch.size(), most, 4});
  auto* to = batch.target.storage<float>();
  std::fill_n(to, batch.target.elements(), 0.0F);
  for (const Sample& sample : work.samples) {
    const auto boxes = sample.target.data<float>();
    std::copy(boxes.begin(), boxes.end(), to);
    to += most * 4;
  }
}

void BatchMaker::collate_target(Work& work, Batch& batch) const {
  const auto& samples = work.samples;
  switch (dataset_.description().task) {
    case Task::none: return;
    case Task::classification:
    case Task::regression: batch.target = stack(samples, target_of); return;
    case Task::detection: collate_boxes(work, batch); return;
    case Task::segmentation: {
      const Tensor masks = stack(samples, target_of);
      batch.target = Tensor(DType::i64, masks.shape());
      std::transform(masks.data<uint8_t>().begin(), masks.data<uint8_t>().end(),
                     batch.target.storage<int64_t>(), [](uint8_t level) {
                       return level == kIgnoredPixel ? kIgnoredTarget : int64_t{level};
                     });
      return;
    }
    case Task::transcription:
      batch.target = filled({batch.size(), longest(samples, target_of)}, 0);
      copy_lines(samples, target_of, batch.target);
      batch.target_lengths = lengths_of(samples, target_of);
      return;
    case Task::next_token:
      batch.target = filled({batch.size(), batch.input.shape()[1]}, kIgnoredTarget);
      copy_lines(samples, target_of, batch.target);
      return;
  }
}

/// Each sample is blended with another one of the batch (Zhang et al., 2018), one weight a batch.
void BatchMaker::mix(Batch& batch) const {
  const int64_t count = batch.size(), classes = dataset_.description().class_count;
  Draws draws(Purpose::mixup, options_.seed, batch.epoch,
              batch.step * options_.ranks + options_.rank);
  const auto weight = static_cast<float>(draws.beta(options_.augment.mixup));
  std::vector<int64_t> partners(static_cast<size_t>(count));
  std::iota(partners.begin(), partners.end(), int64_t{0});
  shuffle(partners, draws);
  const Tensor plain = batch.input.clone();
  const int64_t size = count > 0 ? plain.elements() / count : 0;
  Tensor target(DType::f32, {count, classes});
  std::fill_n(target.storage<float>(), target.elements(), 0.0F);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t partner = partners[static_cast<size_t>(i)];
    const auto* other = plain.storage<float>() + partner * size;
    auto* mine = batch.input.storage<float>() + i * size;
    for (int64_t k = 0; k < size; ++k) mine[k] = weight * mine[k] + (1 - weight) * other[k];
    const auto* labels = batch.target.storage<int64_t>();
    target.storage<float>()[i * classes + labels[i]] += weight;
    target.storage<float>()[i * classes + labels[partner]] += 1 - weight;
  }
  batch.target = target;
}

Batch BatchMaker::finish(Work work) const {
  Batch batch;
  batch.indices = work.plan.indices;
  batch.epoch = work.plan.epoch;
  batch.step = work.plan.step;
  batch.global_size = work.plan.global_size;
  batch.last_of_epoch = work.plan.last_of_epoch;
  // A rank may get nothing of the last global batch.
  if (batch.indices.empty()) return batch;
  collate_input(work, batch);
  collate_target(work, batch);
  if (training_ && options_.augment.mixup > 0 && batch.input.dtype() == DType::f32) mix(batch);
  return batch;
}

size_t bytes_of(const Batch& batch) {
  return batch.input.bytes() + batch.target.bytes() + batch.classes.bytes();
}

}  // namespace dais::data
