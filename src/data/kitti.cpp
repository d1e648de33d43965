#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "data/boxes.h"
#include "data/readers.h"

namespace dais::data {

namespace fs = std::filesystem;

namespace {

std::string stem_of(const std::string& file) { return file.substr(0, file.rfind('.')); }

/// The fields of a line apart by blanks.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (line = trimmed(line); !line.empty(); line = trimmed(line)) {
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

/// Files images/NAME.png with labels/NAME.txt; a line is: class, truncation, occlusion, angle,
/// left, top, right, bottom, and numbers about three dimensions that are not read.
class Kitti final : public BoxImages {
 public:
  Kitti(const fs::path& folder, const OpenOptions& options)
      : BoxImages(folder / "images", options), labels_folder_(folder / "labels") {
    const auto labels = list_files(labels_folder_, [](std::string_view name) {
                          return extension_of(name) == "txt";
                        }).files;
    std::map<std::string, std::string> by_stem;
    for (const auto& name : labels) by_stem[stem_of(name)] = name;
    std::vector<std::string> alone;
    for (auto& image : list_files(folder_, is_image_name).files) {
      const auto found = by_stem.find(stem_of(image));
      if (found == by_stem.end()) {
        alone.push_back(image);
        continue;
      }
      read_labels(found->second);
      files_.push_back(std::move(image));
    }
    if (files_.empty())
      throw Error(Code::not_found, "no image has a file of labels", folder.string(),
                  "Put labels/NAME.txt beside images/NAME.png");
    description_.format = "kitti";
    description_.found = std::to_string(files_.size()) + " images with boxes in KITTI text files";
    number_classes(names_);
    add_finding(description_, "image without labels", std::move(alone));
    add_finding(description_, "line that is no box", std::move(broken_));
    settle();
  }

 private:
  void read_labels(const std::string& name) {
    const Blob file = load_file(labels_folder_ / name, size_t{64} << 20);
    boxes_.emplace_back();
    names_.emplace_back();
    int64_t number = 0;
    for (const auto line : lines_of(file.text())) {
      ++number;
      const auto words = words_of(line);
      if (words.empty()) continue;
      Box box{};
      constexpr size_t kFirst = 4;
      bool good = words.size() >= kFirst + 4;
      for (size_t i = 0; good && i < 4; ++i) {
        const auto word = words[kFirst + i];
        const auto [end, error] =
            std::from_chars(word.data(), word.data() + word.size(), box.corners[i]);
        good = error == std::errc() && end == word.data() + word.size() &&
               std::isfinite(box.corners[i]);
      }
      if (!good) {
        broken_.push_back(name + " line " + std::to_string(number));
        continue;
      }
      // Regions that annotators left out are no objects.
      if (words[0] == "DontCare") continue;
      boxes_.back().push_back(box);
      names_.back().emplace_back(words[0]);
    }
  }

  fs::path labels_folder_;
  std::vector<std::vector<std::string>> names_;
  std::vector<std::string> broken_;
};

}  // namespace

DatasetPtr open_kitti(const fs::path& folder, const OpenOptions& options) {
  return std::make_shared<Kitti>(folder, options);
}

}  // namespace dais::data
