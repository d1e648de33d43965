#include "data/boxes.h"

#include <algorithm>
#include <map>
#include <set>

namespace dais::data {

void BoxImages::number_classes(const std::vector<std::vector<std::string>>& names) {
  auto& classes = description_.classes;
  classes = options_.classes;
  if (classes.empty()) {
    std::set<std::string> all;
    for (const auto& of_file : names) all.insert(of_file.begin(), of_file.end());
    classes.assign(all.begin(), all.end());
  }
  description_.class_count = static_cast<int64_t>(classes.size());
  std::map<std::string, int64_t> numbers;
  for (const auto& name : classes) numbers.emplace(name, static_cast<int64_t>(numbers.size()));
  std::vector<std::string> flat;
  std::vector<int64_t> used;
  for (size_t i = 0; i < boxes_.size(); ++i) {
    std::vector<Box> kept;
    for (size_t k = 0; k < boxes_[i].size(); ++k) {
      Box box = boxes_[i][k];
      const auto found = numbers.find(names[i][k]);
      if (found == numbers.end()) continue;
      box.label = found->second;
      const float width = box.corners[2] - box.corners[0], height = box.corners[3] - box.corners[1];
      if (!(width > 0 && height > 0)) {
        flat.push_back(files_[i] + ": a box of " + names[i][k]);
        continue;
      }
      kept.push_back(box);
      used.push_back(box.label);
    }
    boxes_[i] = std::move(kept);
  }
  add_finding(description_, "box without area", std::move(flat));
  find_empty_classes(description_, used);
}

void BoxImages::add_target(int64_t index, Bytes file, Sample& sample) const {
  const auto header = read_image_header(file);
  if (!header) refuse_image("its header is broken");
  const Placement place = placement(header->height, header->width, image_);
  const auto height = static_cast<double>(sample.input.shape()[0]);
  const auto width = static_cast<double>(sample.input.shape()[1]);
  std::vector<float> corners;
  std::vector<int64_t> classes;
  for (const Box& box : boxes_[static_cast<size_t>(index)]) {
    const double x1 = std::clamp(box.corners[0] * place.scale_x + place.shift_x, 0.0, width);
    const double y1 = std::clamp(box.corners[1] * place.scale_y + place.shift_y, 0.0, height);
    const double x2 = std::clamp(box.corners[2] * place.scale_x + place.shift_x, 0.0, width);
    const double y2 = std::clamp(box.corners[3] * place.scale_y + place.shift_y, 0.0, height);
    if (x2 <= x1 || y2 <= y1 || std::min(x2 - x1, y2 - y1) < options_.min_pixels) continue;
    for (const double value : {x1, y1, x2, y2}) corners.push_back(static_cast<float>(value));
    classes.push_back(box.label);
  }
  sample.target =
      Tensor::of<float>({static_cast<int64_t>(classes.size()), 4}, std::span<const float>(corners));
  sample.classes = Tensor::ints(classes);
}

}  // namespace dais::data
