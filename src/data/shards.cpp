#include "data/shards.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "data/audio.h"
#include "data/augment.h"
#include "data/image.h"
#include "data/readers.h"
#include "data/tokens.h"
#include "ir/npy.h"

namespace dais::data {

namespace fs = std::filesystem;

namespace {

using nlohmann::json;

/// The files of one sample: those whose names are equal up to the first dot.
struct Group {
  std::string key;
  std::map<std::string, Bytes> parts;  ///< by what follows the dot, in lower case

  const Bytes* find(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      if (const auto found = parts.find(name); found != parts.end()) return &found->second;
    return nullptr;
  }
};

constexpr std::initializer_list<const char*> kImages = {"jpg", "jpeg", "png",      "webp",
                                                        "bmp", "ppm",  "input.png"};
constexpr std::initializer_list<const char*> kSounds = {"wav", "flac", "ogg"};
constexpr std::initializer_list<const char*> kArrays = {"input.npy", "npy", "x.npy"};
constexpr std::initializer_list<const char*> kMasks = {"mask.png", "seg.png", "label.png"};
constexpr std::initializer_list<const char*> kTargets = {"target.npy", "y.npy"};

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

int64_t class_number(Bytes bytes) {
  const std::string_view text = trimmed(text_of(bytes));
  int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

class Shards final : public Dataset {
 public:
  Shards(const fs::path& path, const OpenOptions& options)
      : options_(options), image_(options.image) {
    const bool folder = fs::is_directory(path);
    const fs::path base = folder ? path : path.parent_path();
    std::vector<std::string> names{path.filename().string()};
    if (folder) {
      names = list_files(path, [](std::string_view name) {
                return extension_of(name) == "tar" && name.find('/') == std::string_view::npos;
              }).files;
      if (fs::exists(path / kShardIndex)) read_index(path / kShardIndex, names);
    }
    if (names.empty()) throw Error(Code::not_found, "there is no .tar file", path.string());
    for (const auto& name : names) add_shard(base / name);
    if (groups_.empty())
      throw Error(Code::invalid_argument, "the archive holds no files", path.string());
    if (!own_) guess();
    settle_input();
    if (description_.task == Task::classification) settle_labels();
    if (description_.task == Task::transcription && description_.input == InputKind::features)
      settle_words();
    description_.format = "shards";
    description_.found = std::to_string(groups_.size()) + " samples in " +
                         std::to_string(files_.size()) + " tar shards" +
                         (own_ ? "" : ", kinds guessed from the names of their files");
  }

  int64_t size() const override { return static_cast<int64_t>(groups_.size()); }
  std::string name(int64_t index) const override { return groups_[static_cast<size_t>(index)].key; }
  int64_t label(int64_t index) const override {
    return labels_.empty() ? -1 : labels_[static_cast<size_t>(index)];
  }

  Sample read(int64_t index) const override {
    Sample sample;
    try {
      const Group& group = groups_[static_cast<size_t>(index)];
      sample.input = read_input(group);
      read_target(index, group, sample);
    } catch (const Error& error) {
      throw error.at(name(index));
    }
    return sample;
  }

  RawSample raw(int64_t index) const override {
    const Group& group = groups_[static_cast<size_t>(index)];
    for (const auto& names : {kImages, kSounds, kArrays})
      for (const char* name : names)
        if (const Bytes* bytes = group.find({name})) return {*bytes, name, files_.front()};
    return {};
  }

 private:
  /// What a build wrote about its shards.
  void read_index(const fs::path& path, std::vector<std::string>& names) {
    const Blob file = load_file(path, size_t{256} << 20);
    const json index = json::parse(file.text(), nullptr, false);
    try {
      if (index.at("format") != "dais shards" || index.at("version") != 1)
        throw Error(Code::unsupported, "an index of another version", path.string());
      own_ = true;
      description_.task = task_from_name(index.at("task").get<std::string>());
      description_.input = input_kind_from_name(index.at("input").get<std::string>());
      description_.input_shape = Shape(index.at("input_shape").get<std::vector<int64_t>>());
      description_.classes = index.at("classes").get<std::vector<std::string>>();
      description_.class_count = index.at("class_count");
      description_.seconds_per_frame = index.value("seconds_per_frame", 0.0);
      names.clear();
      std::vector<std::string> wrong;
      for (const auto& shard : index.at("shards")) {
        names.push_back(shard.at("file"));
        const fs::path place = confined_path(path.parent_path(), names.back());
        std::error_code problem;
        const auto bytes = fs::file_size(place, problem);
        if (problem || shard.at("bytes") != bytes) wrong.push_back(names.back());
      }
      if (!wrong.empty())
        throw Error(
            Code::invalid_argument,
            std::to_string(wrong.size()) + " shards are missing or cut off, such as " + wrong[0],
            path.string(), "Copy or build them again");
    } catch (const json::exception&) {
      throw Error(Code::invalid_argument, "not a readable index of shards", path.string());
    }
  }

  void add_shard(const fs::path& path) {
    const auto file = MappedFile::open(path);
    files_.push_back(file);
    for (const TarMember& member : parse_tar(file->bytes(), path.string())) {
      const size_t dot = member.name.find('.', member.name.rfind('/') + 1);
      if (dot == std::string::npos) continue;
      const std::string key = path.filename().string() + ":" + member.name.substr(0, dot);
      if (groups_.empty() || groups_.back().key != key) groups_.push_back({key, {}});
      groups_.back().parts[lower(member.name.substr(dot + 1))] = member.data;
    }
  }

  void guess() {
    const Group& first = groups_.front();
    const bool image = first.find(kImages), sound = first.find(kSounds);
    description_.input = image ? InputKind::image : sound ? InputKind::features : InputKind::array;
    if (!image && !sound && !first.find(kArrays))
      throw Error(Code::invalid_argument, "the archive holds no images, sounds or arrays",
                  first.key, "Name samples KEY.jpg, KEY.wav or KEY.npy");
    if (first.find({"cls"}))
      description_.task = Task::classification;
    else if (image && first.find(kMasks))
      description_.task = Task::segmentation;
    else if (sound && first.find({"txt"}))
      description_.task = Task::transcription;
    else if (first.find(kTargets))
      description_.task = Task::regression;
    if (!options_.labels.empty()) {
      description_.classes = read_names(options_.labels);
      description_.class_count = static_cast<int64_t>(description_.classes.size());
    }
  }

  void settle_input() {
    const Group& first = groups_.front();
    if (description_.input == InputKind::image && !first.find(kArrays)) {
      ImageHeader header;
      if (const Bytes* bytes = first.find(kImages))
        header = read_image_header(*bytes).value_or(ImageHeader{});
      if (image_.channels == 0)
        image_.channels = own_                   ? static_cast<int>(description_.input_shape.back())
                          : header.channels == 1 ? 1
                                                 : 3;
      if (image_.height > 0)
        description_.input_shape = {image_.height, image_.width, image_.channels};
      else if (!own_)
        description_.input_shape = {header.height, header.width, image_.channels};
    } else if (description_.input == InputKind::features && !first.find(kArrays)) {
      const Bytes* bytes = first.find(kSounds);
      const auto header = bytes ? read_sound_header(*bytes) : std::nullopt;
      int64_t rate = options_.audio.sample_rate;
      if (rate == 0) rate = header ? header->rate : 0;
      if (rate == 0)
        throw Error(Code::invalid_argument, "the first sound is unreadable", first.key);
      extractor_.emplace(options_.audio, rate);
      description_.input_shape = {0, extractor_->size()};
      description_.seconds_per_frame = extractor_->seconds_per_frame();
    } else if (!own_) {
      description_.input_shape = read_input(first).shape();
    }
  }

  void settle_labels() {
    std::vector<std::string> wrong;
    int64_t most = 0;
    constexpr int64_t kMostClasses = 1 << 20;
    for (const Group& group : groups_) {
      const Bytes* bytes = group.find({"cls"});
      const int64_t label = bytes ? class_number(*bytes) : -1;
      const int64_t limit = description_.class_count > 0 ? description_.class_count : kMostClasses;
      if (label < 0 || label >= limit)
        wrong.push_back(group.key);
      else
        most = std::max(most, label + 1);
      labels_.push_back(label);
    }
    if (description_.class_count == 0) description_.class_count = most;
    add_finding(description_, "label outside the classes", std::move(wrong));
    find_empty_classes(description_, labels_);
  }

  void settle_words() {
    if (own_ && groups_.front().find(kTargets)) return;
    std::string all;
    for (const Group& group : groups_) {
      const Bytes* bytes = group.find({"txt"});
      const auto text = bytes ? trimmed(text_of(*bytes)) : std::string_view();
      texts_.push_back(options_.text.plain_words ? plain_words(text) : std::string(text));
      all += texts_.back();
    }
    tokenizer_ = make_tokenizer(options_.text, all, 1);
    description_.classes = tokenizer_->names();
    description_.classes.insert(description_.classes.begin(), "<blank>");
    description_.class_count = tokenizer_->size();
  }

  Tensor read_input(const Group& group) const {
    if (const Bytes* bytes = group.find(kArrays)) {
      Tensor array = parse_npy(*bytes, group.key);
      if (description_.input != InputKind::image) return array;
      if (array.dtype() != DType::u8 || array.rank() != 3)
        throw Error(Code::invalid_argument, "pixels of " + array.describe());
      Image image{array.shape()[0], array.shape()[1], static_cast<int>(array.shape()[2]), {}};
      if (image.channels < 1 || image.channels > 4) refuse_image("its channels are wrong");
      image.pixels.assign(array.data<uint8_t>().begin(), array.data<uint8_t>().end());
      return finish_image(std::move(image), image_);
    }
    if (description_.input == InputKind::features) {
      const Bytes* bytes = group.find(kSounds);
      if (!bytes) throw Error(Code::invalid_argument, "the sample has no sound");
      Sound sound = decode_sound(*bytes, options_.audio.max_seconds);
      if (options_.audio.sample_rate > 0) sound = resample(sound, options_.audio.sample_rate);
      return extractor_->extract(sound);
    }
    const Bytes* bytes = group.find(kImages);
    if (!bytes) throw Error(Code::invalid_argument, "the sample has no input");
    return load_image(*bytes, image_);
  }

  void read_target(int64_t index, const Group& group, Sample& sample) const {
    if (description_.task == Task::none) return;
    if (description_.task == Task::classification) {
      const int64_t number = label(index);
      if (number < 0 || number >= description_.class_count)
        throw Error(Code::invalid_argument, "the label is outside the classes");
      sample.target = Tensor::scalar<int64_t>(number);
      return;
    }
    if (tokenizer_) {
      std::vector<int32_t> tokens;
      tokenizer_->encode(texts_[static_cast<size_t>(index)], tokens);
      sample.target = Tensor::ints(std::vector<int64_t>(tokens.begin(), tokens.end()));
      return;
    }
    if (description_.task == Task::segmentation) {
      const Bytes* bytes = group.find(kMasks);
      if (!bytes) throw Error(Code::invalid_argument, "the sample has no mask");
      Image mask = fit_mask(decode_mask(*bytes, image_.max_pixels), image_, kIgnoredPixel);
      const Shape shape{mask.height, mask.width};
      sample.target = image_tensor(std::move(mask)).reshaped(shape);
      return;
    }
    const Bytes* bytes = group.find(kTargets);
    if (!bytes) throw Error(Code::invalid_argument, "the sample has no target");
    sample.target = parse_npy(*bytes, group.key);
    check_target(group, sample);
  }

  /// Targets come from outside: they must be what the task says before anybody indexes with them.
  void check_target(const Group& group, Sample& sample) const {
    const Shape& shape = sample.target.shape();
    const DType dtype = sample.target.dtype();
    bool good = true;
    switch (description_.task) {
      case Task::detection: {
        const Bytes* bytes = group.find({"classes.npy"});
        if (bytes) sample.classes = parse_npy(*bytes, group.key);
        good = bytes && dtype == DType::f32 && shape.rank() == 2 && shape[1] == 4 &&
               sample.classes.dtype() == DType::i64 && sample.classes.shape() == Shape{shape[0]} &&
               in_range(sample.classes, description_.class_count);
        break;
      }
      case Task::transcription:
        good = dtype == DType::i64 && shape.rank() == 1 &&
               in_range(sample.target, description_.class_count);
        break;
      case Task::next_token:
        good = dtype == DType::i64 && shape == sample.input.shape() &&
               in_range(sample.target, description_.class_count);
        break;
      default: good = dtype == DType::f32;
    }
    if (!good)
      throw Error(Code::invalid_argument,
                  "a target of " + sample.target.describe() + " does not fit its task");
  }

  static bool in_range(const Tensor& numbers, int64_t limit) {
    return std::all_of(numbers.data<int64_t>().begin(), numbers.data<int64_t>().end(),
                       [&](int64_t number) { return number >= 0 && number < limit; });
  }

  OpenOptions options_;
  ImageOptions image_;
  bool own_ = false;  ///< written by a build, with an index
  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<Group> groups_;
  std::vector<int64_t> labels_;
  std::vector<std::string> texts_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<FeatureExtractor> extractor_;
};

}  // namespace

DatasetPtr open_shards(const fs::path& path, const OpenOptions& options) {
  return std::make_shared<Shards>(path, options);
}

}  // namespace dais::data
