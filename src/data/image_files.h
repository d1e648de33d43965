#pragma once

#include "data/dataset.h"
#include "data/files.h"
#include "data/image.h"

namespace dais::data {

/// Samples that are image files in one folder.
class ImageFiles : public Dataset {
 public:
  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  std::string name(int64_t index) const override { return files_[static_cast<size_t>(index)]; }
  int64_t label(int64_t index) const override {
    return labels_.empty() ? -1 : labels_[static_cast<size_t>(index)];
  }
  Sample read(int64_t index) const override;
  RawSample raw(int64_t index) const override;

 protected:
  ImageFiles(std::filesystem::path folder, ImageOptions image)
      : folder_(std::move(folder)), image_(image) {}

  /// Looks at the headers of some files to settle channels and size; sets the description's input.
  void settle();
  std::vector<uint8_t> bytes_of(int64_t index) const;
  /// Fills the target of a sample; `file` is the image.
  virtual void add_target(int64_t index, Bytes file, Sample& sample) const;

  std::filesystem::path folder_;
  ImageOptions image_;
  std::vector<std::string> files_;  ///< relative to the folder
  std::vector<int64_t> labels_;     ///< empty: none
};

}  // namespace dais::data
