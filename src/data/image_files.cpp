#include "data/image_files.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "data/readers.h"

namespace dais::data {

namespace fs = std::filesystem;

std::vector<uint8_t> ImageFiles::bytes_of(int64_t index) const {
  return read_file(folder_ / files_[static_cast<size_t>(index)]);
}

RawSample ImageFiles::raw(int64_t index) const {
  Blob blob = blob_of(bytes_of(index));
  return {blob.bytes, extension_of(files_[static_cast<size_t>(index)]), blob.owner};
}

Sample ImageFiles::read(int64_t index) const {
  const std::vector<uint8_t> file = bytes_of(index);
  Sample sample;
  try {
    sample.input = load_image(file, image_);
    add_target(index, file, sample);
  } catch (const Error& error) {
    throw error.at(name(index));
  }
  return sample;
}

void ImageFiles::add_target(int64_t index, Bytes, Sample& sample) const {
  if (!labels_.empty())
    sample.target = Tensor::scalar<int64_t>(labels_[static_cast<size_t>(index)]);
}

void ImageFiles::settle() {
  description_.input = InputKind::image;
  constexpr size_t kProbes = 64;
  const size_t count = std::min(files_.size(), kProbes);
  ImageHeader first;
  int channels = 1;
  for (size_t i = 0; i < count; ++i) {
    const size_t index = count < kProbes ? i : i * (files_.size() - 1) / (kProbes - 1);
    std::vector<uint8_t> bytes;
    try {
      bytes = bytes_of(static_cast<int64_t>(index));
    } catch (const Error&) {
      continue;
    }
    const auto header = read_image_header(bytes);
    if (!header) continue;
    if (first.height == 0) first = *header;
    if (header->channels != 1) channels = 3;
  }
  if (image_.channels == 0) image_.channels = channels;
  if (image_.height < 1 || image_.width < 1) image_.height = image_.width = 0;
  description_.input_shape = image_.height > 0 ? Shape{image_.height, image_.width, image_.channels}
                                               : Shape{first.height, first.width, image_.channels};
}

namespace {

class ImageFolder final : public ImageFiles {
 public:
  ImageFolder(const fs::path& folder, const OpenOptions& options)
      : ImageFiles(folder, options.image) {
    Listing listing = list_files(folder, is_image_name);
    files_ = std::move(listing.files);
    if (files_.empty())
      throw Error(Code::not_found, "there is no image file", folder.string(),
                  "Give a folder with one folder of images per class");
    description_.format = "image folder";
    find_classes(options);
    add_finding(description_, "link that leaves the folder", std::move(listing.leaving));
    settle();
  }

 private:
  static std::string class_of(const std::string& file) {
    const size_t slash = file.find('/');
    return slash == std::string::npos ? "" : file.substr(0, slash);
  }

  void find_classes(const OpenOptions& options) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_directory() && !name.starts_with('.')) names.insert(name);
    }
    if (names.empty()) {
      description_.found = "folder of " + std::to_string(files_.size()) + " images without classes";
      return;
    }
    description_.task = Task::classification;
    description_.classes = options.labels.empty()
                               ? std::vector<std::string>(names.begin(), names.end())
                               : read_names(options.labels);
    description_.class_count = static_cast<int64_t>(description_.classes.size());
    description_.found = "folder of images with " + std::to_string(description_.class_count) +
                         " folders, one per class";
    std::map<std::string, int64_t> numbers;
    for (const auto& name : description_.classes)
      numbers.emplace(name, static_cast<int64_t>(numbers.size()));
    std::vector<std::string> kept, strays;
    for (auto& file : files_) {
      const auto found = numbers.find(class_of(file));
      if (found == numbers.end()) {
        strays.push_back(file);
        continue;
      }
      labels_.push_back(found->second);
      kept.push_back(std::move(file));
    }
    files_ = std::move(kept);
    add_finding(description_, "image outside the folders of the classes", std::move(strays));
    find_empty_classes(description_, labels_);
  }
};

/// Lines of a path, blanks, and a label; the path may hold blanks.
class ImageList final : public ImageFiles {
 public:
  ImageList(const fs::path& list, const OpenOptions& options)
      : ImageFiles(options.root.empty() ? list.parent_path() : options.root, options.image),
        list_(list) {
    if (folder_.empty()) folder_ = ".";
    description_.format = "text list";
    if (!options.labels.empty()) description_.classes = read_names(options.labels);
    const Blob text = load_file(list, options.max_bytes);
    int64_t number = 0;
    for (const auto line : lines_of(text.text())) read_line(trimmed(line), ++number);
    if (files_.empty())
      throw Error(Code::invalid_argument, "no line names an image", list.string(),
                  "Write lines of a path and a label");
    number_labels();
    add_finding(description_, "path that leaves the folder", std::move(leaving_));
    add_finding(description_, "file that does not exist", std::move(missing_));
    settle();
  }

 private:
  void read_line(std::string_view line, int64_t number) {
    if (line.empty() || line.starts_with('#')) return;
    const std::string place = "line " + std::to_string(number) + ": ";
    std::string_view path = line, label;
    // A line that is the name of a file has no label.
    if (const size_t blank = line.find_last_of(" \t,");
        blank != std::string_view::npos && !is_image_name(line)) {
      path = trimmed(line.substr(0, blank));
      label = trimmed(line.substr(blank + 1));
    }
    if (path.ends_with(',')) path.remove_suffix(1);
    try {
      const fs::path file = confined_path(folder_, path);
      if (!fs::exists(file)) {
        missing_.push_back(place + std::string(path));
        return;
      }
    } catch (const Error&) {
      leaving_.push_back(place + std::string(path));
      return;
    }
    files_.emplace_back(path);
    names_.emplace_back(label);
  }

  /// Labels are numbers, or names: of the list of classes, or numbered in byte order.
  void number_labels() {
    const bool none =
        std::all_of(names_.begin(), names_.end(), [](const auto& name) { return name.empty(); });
    description_.found = "list of " + std::to_string(files_.size()) + " images in " +
                         list_.filename().string() + (none ? " without labels" : "");
    if (none) return;
    description_.task = Task::classification;
    const bool numbers = std::all_of(names_.begin(), names_.end(),
                                     [](const auto& name) { return whole_number(name) >= 0; });
    auto& classes = description_.classes;
    if (classes.empty() && !numbers) {
      const std::set<std::string> sorted(names_.begin(), names_.end());
      classes.assign(sorted.begin(), sorted.end());
    }
    std::map<std::string, int64_t> by_name;
    for (size_t i = 0; i < classes.size(); ++i) by_name[classes[i]] = static_cast<int64_t>(i);
    description_.class_count = static_cast<int64_t>(classes.size());
    if (classes.empty())
      for (const auto& name : names_)
        description_.class_count = std::max(description_.class_count, whole_number(name) + 1);
    keep_known(by_name, numbers);
    find_empty_classes(description_, labels_);
  }

  void keep_known(const std::map<std::string, int64_t>& by_name, bool numbers) {
    std::vector<std::string> kept, unknown;
    for (size_t i = 0; i < files_.size(); ++i) {
      const auto found = by_name.find(names_[i]);
      const int64_t label = found != by_name.end() ? found->second
                            : numbers              ? whole_number(names_[i])
                                                   : -1;
      if (label < 0 || label >= description_.class_count) {
        unknown.push_back(files_[i] + ": '" + names_[i] + "'");
        continue;
      }
      labels_.push_back(label);
      kept.push_back(std::move(files_[i]));
    }
    files_ = std::move(kept);
    add_finding(description_, "label outside the classes", std::move(unknown));
  }

  /// -1 for anything that is no class number.
  static int64_t whole_number(std::string_view text) {
    constexpr int64_t kMostClasses = 1 << 20;
    int64_t value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && value < kMostClasses ? value
                                                                                            : -1;
  }

  fs::path list_;
  std::vector<std::string> names_, missing_, leaving_;
};

}  // namespace

DatasetPtr open_image_folder(const fs::path& folder, const OpenOptions& options) {
  return std::make_shared<ImageFolder>(folder, options);
}

DatasetPtr open_image_list(const fs::path& list, const OpenOptions& options) {
  return std::make_shared<ImageList>(list, options);
}

}  // namespace dais::data
