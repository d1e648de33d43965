#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "data/image.h"
#include "data/readers.h"

namespace dais::data {

namespace fs = std::filesystem;

namespace {

using Open = DatasetPtr (*)(const fs::path&, const OpenOptions&);

struct Format {
  const char* name;
  Open open;
};
constexpr Format kFormats[] = {
    {"image-folder", open_image_folder},
    {"image-list", open_image_list},
    {"masks", open_masks},
    {"kitti", open_kitti},
    {"coco", open_coco},
    {"idx", open_idx},
    {"cifar", open_cifar},
    {"csv", open_csv},
    {"numpy", open_numpy},
    {"audio-folder", open_audio_folder},
    {"speech", open_speech},
    {"text", open_text},
    {"shards", open_shards},
    {"subset", open_subset},
};

/// What one look at a folder tells.
struct Contents {
  std::vector<std::string> files, folders;

  explicit Contents(const fs::path& folder) {
    std::error_code problem;
    for (fs::directory_iterator at(folder, problem), end; !problem && at != end;
         at.increment(problem)) {
      const std::string name = at->path().filename().string();
      if (name.starts_with('.')) continue;
      std::error_code ignored;
      (at->is_directory(ignored) ? folders : files).push_back(name);
    }
    if (problem)
      throw Error(Code::unavailable, "cannot list the folder: " + problem.message(),
                  folder.string());
    std::sort(files.begin(), files.end());
    std::sort(folders.begin(), folders.end());
  }

  bool has_folder(std::string_view name) const {
    return std::find(folders.begin(), folders.end(), name) != folders.end();
  }
  template <typename Test>
  std::string first_file(const Test& test) const {
    const auto found = std::find_if(files.begin(), files.end(), test);
    return found == files.end() ? "" : *found;
  }
  template <typename Test>
  bool any_file(const Test& test) const {
    return std::any_of(files.begin(), files.end(), test);
  }
};

bool any_below(const fs::path& folder, const std::function<bool(std::string_view)>& wanted) {
  return !list_files(folder, wanted).files.empty();
}

/// The folder of the wanted part, where a folder is divided into parts.
std::string part_folder(const Contents& in, const std::string& part) {
  if (!in.has_folder("train")) return {};
  if (part.empty() || part == "train") return "train";
  for (const char* name : {part.c_str(), "val", "valid", "validation", "test"})
    if (in.has_folder(name)) return name;
  return {};
}

bool is_manifest(std::string_view name) {
  const std::string ending = extension_of(name);
  return ending == "jsonl" || ending == "tsv" || ending == "csv" ||
         ((name.starts_with("manifest") || name.starts_with("transcript")) &&
          (ending == "json" || ending == "txt"));
}

std::string format_of_folder(const fs::path& folder, const Contents& in) {
  const auto ends = [](const char* extension) {
    return [extension](std::string_view name) { return extension_of(name) == extension; };
  };
  if (in.any_file(ends("tar"))) return "shards";
  if (in.any_file([](std::string_view name) {
        return name == "data_batch_1.bin" || name == "train.bin" || name == "test_batch.bin";
      }))
    return "cifar";
  if (in.any_file(
          [](std::string_view name) { return name.find("idx3-ubyte") != std::string_view::npos; }))
    return "idx";
  if (in.has_folder("images") && in.has_folder("masks")) return "masks";
  if (in.has_folder("images") && in.has_folder("labels"))
    return any_below(folder / "labels", ends("txt")) ? "kitti" : "masks";
  if (in.has_folder("annotations") || in.any_file([](std::string_view name) {
        return name.find("annotations") != std::string_view::npos && extension_of(name) == "json";
      }))
    return "coco";
  if (in.any_file(ends("npy"))) return "numpy";
  if (any_below(folder, is_image_name)) return "image-folder";
  if (any_below(folder, is_audio_name)) return in.any_file(is_manifest) ? "speech" : "audio-folder";
  if (any_below(folder, ends("txt"))) return "text";
  return {};
}

bool looks_like_idx(Bytes bytes) {
  return bytes.size() > 8 && bytes[0] == 0 && bytes[1] == 0 && bytes[2] >= 8 && bytes[2] <= 14 &&
         bytes[3] >= 1 && bytes[3] <= kMaxRank;
}

/// What the first line of a text names: images, sound, or nothing.
std::string format_of_text(std::string_view text) {
  for (const auto line : lines_of(text.substr(0, size_t{1} << 16))) {
    const auto whole = trimmed(line);
    if (whole.empty() || whole.starts_with('#')) continue;
    const auto before = [&](const char* separators) {
      return whole.substr(0, whole.find_last_of(separators));
    };
    if (is_image_name(whole) || is_image_name(trimmed(before(" \t,")))) return "image-list";
    if (is_audio_name(whole.substr(0, whole.find_first_of(" \t,|:")))) return "speech";
    return "text";
  }
  return "text";
}

std::string format_of_json(std::string_view text) {
  const std::string_view head = text.substr(0, 4096);
  if (head.find("\"dais_subset\"") != std::string_view::npos) return "subset";
  if (head.find("\"audio_filepath\"") != std::string_view::npos) return "speech";
  return "coco";
}

std::string format_of_file(const fs::path& path, const OpenOptions& options) {
  std::string name = path.filename().string();
  if (extension_of(name) == "gz") name = path.stem().string();
  const std::string ending = extension_of(name);
  if (ending == "tar") return "shards";
  if (ending == "npy" || ending == "npz") return "numpy";
  if (ending == "jsonl") return "speech";
  const Blob file = load_file(path, options.max_bytes);
  if (looks_like_idx(file.bytes)) return "idx";
  if (ending == "bin") return "cifar";
  if (ending == "json") return format_of_json(file.text());
  if (ending == "csv" || ending == "tsv" || ending == "data") {
    const std::string_view head = file.text().substr(0, 4096);
    const bool speech =
        head.find(".wav") != std::string_view::npos || head.find(".flac") != std::string_view::npos;
    return speech ? "speech" : "csv";
  }
  return format_of_text(file.text());
}

}  // namespace

std::vector<std::string> open_formats() {
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.emplace_back(format.name);
  return names;
}

DatasetPtr open_dataset(const fs::path& path, const OpenOptions& options) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    throw Error(Code::not_found, "there is no such file or folder", path.string(),
                "Check the path of the data");
  fs::path place = path;
  std::string name = options.format;
  if (fs::is_directory(path)) {
    const Contents contents(path);
    if (const std::string part = part_folder(contents, options.part); !part.empty())
      place = path / part;
    else if (!options.part.empty() && options.part != "train" && contents.has_folder("train"))
      throw Error(Code::not_found, "the data has no part '" + options.part + "'", path.string(),
                  "Split it with 'dais data split'");
    if (name.empty())
      name = place == path ? format_of_folder(path, contents)
                           : format_of_folder(place, Contents(place));
  } else if (name.empty()) {
    name = format_of_file(path, options);
  }
  if (name.empty())
    throw Error(Code::invalid_argument, "no known kind of data is in this folder", path.string(),
                "See 'dais data inspect --help' for the formats, and name one with --format");
  for (const Format& format : kFormats)
    if (name == format.name) return format.open(place, options);
  const std::string guess = nearest(name, open_formats());
  throw Error(Code::invalid_argument, "there is no data format '" + name + "'", "--format",
              guess.empty() ? "" : "Did you mean '" + guess + "'?");
}

DatasetPtr open_subset(const fs::path& path, const OpenOptions& options) {
  const Blob file = load_file(path, options.max_bytes);
  const auto json = nlohmann::json::parse(file.text(), nullptr, false);
  try {
    if (json.at("dais_subset") != 1)
      throw Error(Code::unsupported, "a subset of another version", path.string());
    const fs::path source = json.at("source").get<std::string>();
    const fs::path place = source.is_absolute() ? source : path.parent_path() / source;
    std::error_code ignored;
    if (fs::equivalent(place, path, ignored))
      throw Error(Code::invalid_argument, "a subset of itself", path.string());
    OpenOptions of_source = options;
    of_source.format = json.value("format", "");
    if (of_source.format == "subset")
      throw Error(Code::invalid_argument, "a subset of a subset", path.string(),
                  "Split the whole again");
    of_source.part = json.value("part", "");
    DatasetPtr whole = open_dataset(place, of_source);
    if (json.at("samples") != whole->size())
      throw Error(Code::invalid_argument,
                  "the data has " + std::to_string(whole->size()) + " samples now, not " +
                      json.at("samples").dump(),
                  path.string(), "Split it again");
    return subset(std::move(whole), json.at("indices").get<std::vector<int64_t>>());
  } catch (const nlohmann::json::exception&) {
    throw Error(Code::invalid_argument, "not a readable subset file", path.string(),
                "Write it with 'dais data split'");
  }
}

}  // namespace dais::data
