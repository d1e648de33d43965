#include <algorithm>
#include <map>

#include "data/augment.h"
#include "data/image_files.h"
#include "data/readers.h"

namespace dais::data {

namespace fs = std::filesystem;

namespace {

std::string stem_of(const std::string& file) { return file.substr(0, file.rfind('.')); }

/// Images below images/ and their masks below masks/ (or labels/) under the same names.
class Masks final : public ImageFiles {
 public:
  Masks(const fs::path& folder, const OpenOptions& options)
      : ImageFiles(folder / "images", options.image),
        masks_folder_(folder / (fs::is_directory(folder / "masks") ? "masks" : "labels")) {
    std::map<std::string, std::string> by_stem;
    for (auto& mask : list_files(masks_folder_, is_image_name).files) by_stem[stem_of(mask)] = mask;
    std::vector<std::string> alone;
    for (auto& image : list_files(folder_, is_image_name).files) {
      const auto found = by_stem.find(stem_of(image));
      if (found == by_stem.end()) {
        alone.push_back(image);
        continue;
      }
      masks_.push_back(found->second);
      files_.push_back(std::move(image));
    }
    if (files_.empty())
      throw Error(Code::not_found, "no image has a mask", folder.string(),
                  "Put masks/NAME.png beside images/NAME.jpg");
    description_.format = "masks";
    description_.task = Task::segmentation;
    description_.found = std::to_string(files_.size()) + " images with masks of the same names";
    const fs::path names = options.labels.empty() ? folder / "classes.txt" : options.labels;
    if (fs::exists(names)) description_.classes = read_names(names);
    description_.class_count = static_cast<int64_t>(description_.classes.size());
    if (description_.class_count == 0) count_classes();
    add_finding(description_, "image without mask", std::move(alone));
    settle();
  }

 private:
  /// Without a list of names every mask has to be looked at.
  void count_classes() {
    int64_t most = 0;
    std::vector<std::string> unreadable;
    for (size_t i = 0; i < masks_.size(); ++i) {
      try {
        for (const uint8_t level : mask(i).pixels)
          if (level != kIgnoredPixel) most = std::max<int64_t>(most, level + 1);
      } catch (const Error& error) {
        unreadable.emplace_back(error.what());
      }
    }
    description_.class_count = most;
    add_finding(description_, "unreadable mask", std::move(unreadable));
  }

  Image mask(size_t index) const {
    try {
      return decode_mask(read_file(masks_folder_ / masks_[index]), image_.max_pixels);
    } catch (const Error& error) {
      throw error.at(masks_[index]);
    }
  }

  void add_target(int64_t index, Bytes file, Sample& sample) const override {
    Image pixels = mask(static_cast<size_t>(index));
    const auto header = read_image_header(file);
    if (header && (header->height != pixels.height || header->width != pixels.width))
      throw Error(Code::invalid_argument, "image and mask differ in size");
    for (const uint8_t level : pixels.pixels)
      if (level != kIgnoredPixel && level >= description_.class_count)
        throw Error(Code::invalid_argument, "a mask holds class " + std::to_string(level) + " of " +
                                                std::to_string(description_.class_count));
    pixels = fit_mask(std::move(pixels), image_, kIgnoredPixel);
    const Shape shape{pixels.height, pixels.width};
    sample.target = image_tensor(std::move(pixels)).reshaped(shape);
  }

  fs::path masks_folder_;
  std::vector<std::string> masks_;
};

}  // namespace

DatasetPtr open_masks(const fs::path& folder, const OpenOptions& options) {
  return std::make_shared<Masks>(folder, options);
}

}  // namespace dais::data
