#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "data/audio.h"
#include "data/readers.h"
#include "data/tokens.h"

namespace dais::data {

namespace fs = std::filesystem;

namespace {

/// Samples that are sound files in one folder.
class SoundFiles : public Dataset {
 public:
  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  std::string name(int64_t index) const override { return files_[static_cast<size_t>(index)]; }
  int64_t length(int64_t index) const override { return frames_[static_cast<size_t>(index)]; }
  RawSample raw(int64_t index) const override {
    const auto& name = files_[static_cast<size_t>(index)];
    Blob blob = blob_of(read_file(folder_ / name));
    return {blob.bytes, extension_of(name), blob.owner};
  }
  Sample read(int64_t index) const override {
    Sample sample;
    try {
      Sound sound =
          decode_sound(read_file(folder_ / files_[static_cast<size_t>(index)]), audio_.max_seconds);
      if (audio_.sample_rate > 0) sound = resample(sound, audio_.sample_rate);
      sample.input = extractor_->extract(sound);
    } catch (const Error& error) {
      throw error.at(name(index));
    }
    add_target(index, sample);
    return sample;
  }

 protected:
  SoundFiles(fs::path folder, const AudioOptions& audio)
      : folder_(std::move(folder)), audio_(audio) {
    description_.input = InputKind::features;
  }

  virtual void add_target(int64_t index, Sample& sample) const = 0;

  /// Reads all headers: the rate of the features, and lengths.
  void settle() {
    int64_t rate = audio_.sample_rate;
    std::vector<SoundHeader> headers;
    std::vector<std::string> unreadable;
    for (const auto& name : files_) {
      const auto header = read_sound_header(MappedFile::open(folder_ / name)->bytes());
      headers.push_back(header.value_or(SoundHeader{}));
      if (!header) unreadable.push_back(name);
      if (rate == 0 && header) rate = header->rate;
    }
    if (rate == 0)
      throw Error(Code::invalid_argument, "no sound file is readable", folder_.string());
    extractor_.emplace(audio_, rate);
    for (const auto& header : headers) {
      const double seconds =
          header.rate > 0 ? static_cast<double>(header.frames) / static_cast<double>(header.rate)
                          : 0;
      frames_.push_back(extractor_->frames(
          static_cast<int64_t>(std::min(seconds, audio_.max_seconds) * static_cast<double>(rate))));
    }
    description_.input_shape = {0, extractor_->size()};
    description_.seconds_per_frame = extractor_->seconds_per_frame();
    add_finding(description_, "unreadable file", std::move(unreadable));
  }

  fs::path folder_;
  AudioOptions audio_;
  std::vector<std::string> files_;
  std::vector<int64_t> frames_;
  std::optional<FeatureExtractor> extractor_;
};

class AudioFolder final : public SoundFiles {
 public:
  AudioFolder(const fs::path& folder, const OpenOptions& options)
      : SoundFiles(folder, options.audio) {
    std::set<std::string> names;
    std::vector<std::string> strays;
    for (auto& file : list_files(folder, is_audio_name).files) {
      const size_t slash = file.find('/');
      if (slash == std::string::npos) {
        strays.push_back(file);
        continue;
      }
      names.insert(file.substr(0, slash));
      files_.push_back(std::move(file));
    }
    const bool classes = !files_.empty();
    if (!classes) files_.swap(strays);
    if (files_.empty()) throw Error(Code::not_found, "there is no sound file", folder.string());
    description_.format = "audio folder";
    if (classes) {
      description_.task = Task::classification;
      description_.classes.assign(names.begin(), names.end());
      description_.class_count = static_cast<int64_t>(names.size());
      for (const auto& file : files_)
        labels_.push_back(std::distance(names.begin(), names.find(file.substr(0, file.find('/')))));
    }
    description_.found = "folder of " + std::to_string(files_.size()) + " sounds" +
                         (classes ? ", one folder per class" : " without classes");
    add_finding(description_, "sound outside the folders of the classes",
                classes ? std::move(strays) : std::vector<std::string>{});
    settle();
  }

  int64_t label(int64_t index) const override {
    return labels_.empty() ? -1 : labels_[static_cast<size_t>(index)];
  }

 private:
  void add_target(int64_t index, Sample& sample) const override {
    if (!labels_.empty()) sample.target = Tensor::scalar<int64_t>(label(index));
  }

  std::vector<int64_t> labels_;
};

struct Line {
  std::string path, text;
};

/// One line of a manifest: JSON, or a path and a text apart by a tab, "|", ": " or a blank.
std::optional<Line> parse_line(std::string_view line) {
  line = trimmed(line);
  if (line.empty() || line.starts_with('#') || line.starts_with(';')) return std::nullopt;
  if (line.starts_with('{')) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) return std::nullopt;
    Line out;
    for (const char* key : {"audio_filepath", "audio", "path", "wav_filename"})
      if (const auto at = json.find(key); at != json.end() && at->is_string()) out.path = *at;
    for (const char* key : {"text", "transcript", "sentence"})
      if (const auto at = json.find(key); at != json.end() && at->is_string()) out.text = *at;
    return out.path.empty() ? std::nullopt : std::optional(out);
  }
  for (const std::string_view between : {"\t", "|", ": ", " "})
    if (const size_t at = line.find(between); at != std::string_view::npos)
      return Line{std::string(trimmed(line.substr(0, at))),
                  std::string(trimmed(line.substr(at + between.size())))};
  return Line{std::string(line), ""};
}

/// A table with a header that names the columns.
std::vector<Line> parse_table(std::string_view text, const std::string& where) {
  const std::string_view head = text.substr(0, text.find('\n'));
  const char delimiter = head.find('\t') != std::string_view::npos ? '\t' : ',';
  std::vector<Line> lines;
  size_t path = 0, words = 1;
  parse_csv(text, delimiter, where, [&](int64_t row, std::span<const std::string_view> fields) {
    if (row == 0) {
      bool named = false;
      for (size_t i = 0; i < fields.size(); ++i) {
        const std::string name = lower(fields[i]);
        if (name == "path" || name == "wav_filename" || name == "audio" || name == "file") {
          path = i;
          named = true;
        }
        if (name == "text" || name == "transcript" || name == "sentence") words = i;
      }
      if (named) return;
    }
    if (std::max(path, words) < fields.size())
      lines.push_back({std::string(fields[path]), std::string(fields[words])});
  });
  return lines;
}

class Speech final : public SoundFiles {
 public:
  Speech(const fs::path& manifest, const OpenOptions& options)
      : SoundFiles(options.root.empty() ? manifest.parent_path() : options.root, options.audio) {
    if (folder_.empty()) folder_ = ".";
    const Blob file = load_file(manifest, options.max_bytes);
    std::vector<std::string> texts, wrong;
    for (auto& line : read_manifest(file.text(), manifest.string())) {
      std::string name = find(line.path);
      std::string text = options.text.plain_words ? plain_words(line.text) : line.text;
      if (name.empty() || text.empty()) {
        wrong.push_back(line.path + (name.empty() ? ": no such file" : ": no words"));
        continue;
      }
      files_.push_back(std::move(name));
      texts.push_back(std::move(text));
    }
    if (files_.empty())
      throw Error(Code::invalid_argument, "no line names a sound file and its words",
                  manifest.string(), "Name the folder of the sounds with --root");
    tokenize(texts, options.text);
    description_.format = "speech";
    description_.task = Task::transcription;
    description_.found = std::to_string(files_.size()) + " sounds with transcripts from " +
                         manifest.filename().string();
    add_finding(description_, "line without file or words", std::move(wrong));
    settle();
    find_too_short();
  }

 private:
  static std::vector<Line> read_manifest(std::string_view text, const std::string& where) {
    const std::string_view head = trimmed(text.substr(0, text.find('\n')));
    const std::string ending = extension_of(where);
    if (!head.starts_with('{') && (ending == "csv" || ending == "tsv"))
      return parse_table(text, where);
    std::vector<Line> lines;
    for (const auto line : lines_of(text))
      if (auto parsed = parse_line(line)) lines.push_back(std::move(*parsed));
    return lines;
  }

  /// The file below the folder, with an ending added where the manifest leaves it out; "" for none.
  std::string find(const std::string& path) const {
    std::string relative = path;
    if (fs::path(path).is_absolute())
      relative = fs::path(path).lexically_relative(folder_).string();
    for (const char* ending : {"", ".wav", ".flac", ".ogg"}) {
      try {
        std::error_code ignored;
        if (fs::is_regular_file(confined_path(folder_, relative + ending), ignored))
          return relative + ending;
      } catch (const Error&) {
        return {};
      }
    }
    return {};
  }

  void tokenize(const std::vector<std::string>& texts, const TextOptions& options) {
    std::string all;
    for (const auto& text : texts) all += text;
    const auto tokenizer = make_tokenizer(options, all, 1);
    for (const auto& text : texts) {
      std::vector<int32_t> tokens;
      tokenizer->encode(text, tokens);
      targets_.emplace_back(tokens.begin(), tokens.end());
    }
    description_.classes = tokenizer->names();
    description_.classes.insert(description_.classes.begin(), "<blank>");
    description_.class_count = tokenizer->size();
  }

  void find_too_short() {
    std::vector<std::string> wrong;
    for (size_t i = 0; i < files_.size(); ++i)
      if (frames_[i] < static_cast<int64_t>(targets_[i].size()))
        wrong.push_back(files_[i] + ": " + std::to_string(frames_[i]) + " frames for " +
                        std::to_string(targets_[i].size()) + " letters");
    add_finding(description_, "sound shorter than its transcript", std::move(wrong));
  }

  void add_target(int64_t index, Sample& sample) const override {
    sample.target = Tensor::ints(targets_[static_cast<size_t>(index)]);
  }

  std::vector<std::vector<int64_t>> targets_;
};

/// The manifest of a folder.
fs::path manifest_in(const fs::path& folder) {
  const auto files = list_files(folder, [](std::string_view name) {
                       const std::string ending = extension_of(name);
                       return ending == "jsonl" || ending == "tsv" || ending == "csv" ||
                              name.starts_with("manifest") || name.starts_with("transcript");
                     }).files;
  if (files.empty())
    throw Error(Code::not_found, "there is no manifest of sounds and words", folder.string(),
                "Name the file");
  return folder / files[0];
}

}  // namespace

DatasetPtr open_audio_folder(const fs::path& folder, const OpenOptions& options) {
  return std::make_shared<AudioFolder>(folder, options);
}

DatasetPtr open_speech(const fs::path& path, const OpenOptions& options) {
  return std::make_shared<Speech>(fs::is_directory(path) ? manifest_in(path) : path, options);
}

}  // namespace dais::data
