#include "cli/data_flags.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace dais::cli {
namespace {

constexpr const char* kData = "Data";
constexpr const char* kAugment = "Augmentation";

/// Mean and deviation of each channel or column over some samples, after scaling.
void measure(const data::Dataset& dataset, data::Normalise& normalise) {
  constexpr int64_t kSamples = 2000;
  const data::InputKind kind = dataset.description().input;
  const bool image = kind == data::InputKind::image;
  if (!image && kind != data::InputKind::row)
    throw Error(Code::invalid_argument, "only images and rows can be standardised", "--standardise",
                "Leave the flag out");
  std::vector<double> sum, squares;
  double count = 0;
  const int64_t step = std::max<int64_t>(1, dataset.size() / kSamples);
  for (int64_t i = 0; i < dataset.size(); i += step) {
    const Tensor input = dataset.read(i).input;
    const auto width = static_cast<size_t>(input.shape().back());
    sum.resize(width);
    squares.resize(width);
    for (int64_t k = 0; k < input.elements(); ++k) {
      const double x = input.to_double(k) * (image ? normalise.scale : 1);
      sum[static_cast<size_t>(k) % width] += x;
      squares[static_cast<size_t>(k) % width] += x * x;
    }
    count += static_cast<double>(input.elements()) / static_cast<double>(width);
  }
  for (size_t c = 0; c < sum.size(); ++c) {
    const double mean = sum[c] / count;
    const double deviation = std::sqrt(std::max(0.0, squares[c] / count - mean * mean));
    normalise.mean.push_back(static_cast<float>(mean));
    normalise.deviation.push_back(static_cast<float>(deviation > 1e-12 ? deviation : 1));
  }
}

}  // namespace

void add_data_flags(CLI::App& command, DataFlags& f) {
  const auto option = [&](const char* name, auto& target, const char* help) {
    return command.add_option(name, target, help)->group(kData);
  };
  option("--data", f.data, "Folder or file with the samples");
  option("--batch", f.loader.batch, "Samples of a batch")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  option("--workers", f.loader.workers, "Threads that decode ahead; -1: chosen");
  f.source.add(command);
}

void add_loader_flags(CLI::App& command, DataFlags& f) {
  const auto option = [&](const char* name, auto& target, const char* help) {
    return command.add_option(name, target, help)->group(kAugment);
  };
  command.add_option("--val", f.validation, "Folder or file with validation samples")->group(kData);
  command.add_option("--val-share", f.validation_share, "Part of the data kept for validation")
      ->check(CLI::Range(0.0, 0.9))
      ->group(kData);
  command.add_option("--mean", f.mean, "Mean of each channel, taken off after scaling to 0 … 1")
      ->group(kData);
  command.add_option("--deviation", f.deviation, "Deviation of each channel, divided by")
      ->group(kData);
  command.add_flag("--standardise", f.standardise, "Find mean and deviation by reading samples")
      ->group(kData);
  command.add_option("--cache-mb", f.cache_mb, "Keep decoded samples in so much memory")
      ->group(kData);
  command
      .add_option(
          "--buckets", f.loader.bucket_batches,
          "Sounds and texts of like lengths share a batch: so many batches are sorted together")
      ->check(CLI::Range(0, 1 << 20))
      ->group(kData);
  command
      .add_option("--pad-multiple", f.loader.pad_multiple,
                  "Lengths of batches are rounded up to a multiple, so that fewer sizes occur")
      ->check(CLI::Range(1, 1 << 20))
      ->group(kData);
  data::Augment& a = f.loader.augment;
  command.add_flag("--flip", a.flip_horizontal, "Mirror half of the images")->group(kAugment);
  command.add_flag("--flip-vertical", a.flip_vertical, "Turn half of them upside down")
      ->group(kAugment);
  command.add_flag("--quarter-turns", a.quarter_turns, "Turn by multiples of 90 degrees")
      ->group(kAugment);
  option("--rotate", a.rotate_deg, "Turn by up to so many degrees either way");
  option("--scale", a.scale_sd, "Deviation of the logarithm of a random scale");
  option("--pad", a.pad, "Pixels of border before a random crop of the image's own size");
  option("--crop", f.crop, "Random crop, HEIGHTxWIDTH; the middle in validation");
  option("--colour", f.colour, "Deviations of hue, saturation and value")->expected(3);
  option("--brightness", a.brightness, "Factor of up to 1 ± this");
  option("--contrast", a.contrast, "Factor of up to 1 ± this");
  option("--noise", a.noise_sd, "Deviation of noise, of the scale 0 to 255");
  option("--mixup", a.mixup, "Alpha of mixed pairs of samples");
  option("--time-masks", a.time_masks, "Masked stretches of time of sound");
  option("--time-mask-max", a.time_mask_max, "Longest of them, in frames");
  option("--frequency-masks", a.frequency_masks, "Masked bands of sound");
  option("--frequency-mask-max", a.frequency_mask_max, "Widest of them");
}

DataParts open_parts(const DataFlags& flags, uint64_t seed) {
  if (flags.data.empty())
    throw Error(Code::invalid_argument, "there are no data to train on", "", "Give --data PATH");
  const data::OpenOptions options = flags.source.options();
  DataParts out;
  out.training = data::open_dataset(flags.data, options);
  data::OpenOptions other = options;
  // Vocabulary and classes are those of the training data.
  const data::Description& about = out.training->description();
  other.text.vocabulary = about.classes;
  if (about.task == data::Task::transcription && !about.classes.empty())
    other.text.vocabulary.erase(other.text.vocabulary.begin());  // the blank
  if (!flags.validation.empty()) {
    if (flags.validation == flags.data) other.part = "test";
    out.validation = data::open_dataset(flags.validation, other);
    out.validation_source = flags.validation;
  } else if (flags.validation_share > 0) {
    const double share[] = {flags.validation_share};
    auto parts = data::stratified_parts(*out.training, share, seed);
    out.validation = data::subset(out.training, std::move(parts[1]));
    out.training = data::subset(out.training, std::move(parts[0]));
    out.validation_source = "split off";
  } else if (options.part.empty()) {
    other.part = "test";
    try {
      auto test = data::open_dataset(flags.data, other);
      if (test->description().found != out.training->description().found ||
          test->size() != out.training->size()) {
        out.validation = std::move(test);
        out.validation_source = "the data's test part";
      }
    } catch (const Error&) {
      // Most data have no such part.
    }
  }
  if (flags.cache_mb > 0)
    out.training = data::cached(out.training, static_cast<size_t>(flags.cache_mb) << 20);
  return out;
}

data::LoaderOptions training_loader(const DataFlags& flags, const data::Dataset& dataset,
                                    uint64_t seed) {
  data::LoaderOptions out = flags.loader;
  out.seed = seed;
  if (!flags.crop.empty())
    std::tie(out.augment.crop_height, out.augment.crop_width) = parse_size(flags.crop, "--crop");
  if (flags.colour.size() == 3) {
    out.augment.hue_sd = flags.colour[0];
    out.augment.saturation_sd = flags.colour[1];
    out.augment.value_sd = flags.colour[2];
  }
  out.normalise.mean = flags.mean;
  out.normalise.deviation = flags.deviation;
  if (flags.standardise) measure(dataset, out.normalise);
  return out;
}

data::LoaderOptions validation_loader(const data::LoaderOptions& training) {
  data::LoaderOptions out = training;
  out.augment = {};
  out.augment.crop_height = training.augment.crop_height;
  out.augment.crop_width = training.augment.crop_width;
  out.shuffle = false;
  out.last = data::LastBatch::keep;
  return out;
}

void fit_features(data::LoaderOptions& options, const Graph& network) {
  const Type& input = network.inputs.at(0)->type;
  const bool image = input.ranked() && input.shape->size() == 4;
  options.features = image ? data::FeatureLayout::image : data::FeatureLayout::time_major;
}

}  // namespace dais::cli
