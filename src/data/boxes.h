#pragma once

#include "data/image_files.h"

namespace dais::data {

/// One object in pixels of the file: x1 y1 x2 y2.
struct Box {
  float corners[4];
  int64_t label;
};

/// Images with boxes around objects.
class BoxImages : public ImageFiles {
 protected:
  BoxImages(std::filesystem::path folder, const OpenOptions& options)
      : ImageFiles(std::move(folder), options.image), options_(options.boxes) {
    description_.task = Task::detection;
  }

  /// Numbers the classes by name, drops boxes of classes that are not asked for, and reports boxes
  /// without area. `names[i]` are the class names of `boxes_[i]`.
  void number_classes(const std::vector<std::vector<std::string>>& names);

  std::vector<std::vector<Box>> boxes_;  ///< of each file

 private:
  void add_target(int64_t index, Bytes file, Sample& sample) const override;

  BoxOptions options_;
};

}  // namespace dais::data
