#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "data/boxes.h"
#include "data/readers.h"

namespace dais::data {

namespace fs = std::filesystem;

namespace {

/// What is needed of an annotation file, which may be much larger (outlines of objects).
struct Annotations {
  struct Object {
    int64_t image = -1, category = -1;
    double box[4] = {0, 0, 0, 0};  ///< x y width height
    int numbers = 0;
    bool crowd = false;
  };
  std::map<int64_t, std::string> images, categories;
  std::vector<Object> objects;
};

/// Reads the three lists as the parser passes by, without keeping the document.
class Scanner final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Scanner(Annotations& out) : out_(out) {}

  bool null() override { return true; }
  bool boolean(bool value) override { return number(value ? 1 : 0); }
  bool number_integer(number_integer_t value) override {
    return number(static_cast<double>(value), value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<double>(value), static_cast<int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool string(string_t& value) override {
    if (depth_ == kEntry && (key_ == "file_name" || key_ == "name")) name_ = value;
    return true;
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    if (++depth_ == kEntry) {
      id_ = -1;
      name_.clear();
      object_ = {};
    }
    return depth_ < kDeepest;
  }
  bool end_object() override {
    if (depth_-- == kEntry) keep();
    return true;
  }
  bool start_array(std::size_t) override { return ++depth_ < kDeepest; }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool key(string_t& value) override {
    if (depth_ == 1) list_ = value;
    if (depth_ == kEntry) key_ = value;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  static constexpr int kEntry = 3, kDeepest = 64;

  bool number(double value, int64_t whole = -1) {
    if (depth_ == kEntry + 1 && key_ == "bbox" && list_ == "annotations" && object_.numbers < 4)
      object_.box[object_.numbers++] = value;
    if (depth_ != kEntry) return true;
    if (key_ == "id") id_ = whole;
    if (key_ == "image_id") object_.image = whole;
    if (key_ == "category_id") object_.category = whole;
    if (key_ == "iscrowd") object_.crowd = value != 0;
    return true;
  }

  void keep() {
    if (list_ == "images" && id_ >= 0) out_.images[id_] = name_;
    if (list_ == "categories" && id_ >= 0) out_.categories[id_] = name_;
    if (list_ == "annotations") out_.objects.push_back(object_);
  }

  Annotations& out_;
  int depth_ = 0;
  std::string list_, key_, name_;
  int64_t id_ = -1;
  Annotations::Object object_;
};

class Coco final : public BoxImages {
 public:
  Coco(const fs::path& json, const fs::path& images, const OpenOptions& options)
      : BoxImages(images, options) {
    const Blob file = load_file(json, options.max_bytes);
    Annotations found;
    Scanner scanner(found);
    if (!nlohmann::json::sax_parse(file.text(), &scanner) || found.images.empty())
      throw Error(Code::invalid_argument, "not a readable COCO file of boxes", json.string(),
                  "It needs the lists images, annotations and categories");
    description_.format = "coco";
    take(found);
    description_.found = std::to_string(files_.size()) + " images with boxes in COCO JSON";
    number_classes(names_);
    settle();
  }

 private:
  void take(const Annotations& found) {
    std::map<int64_t, size_t> place;
    std::vector<std::string> leaving, missing, unknown;
    for (const auto& [id, name] : found.images) {
      try {
        if (!fs::exists(confined_path(folder_, name))) {
          missing.push_back(name);
          continue;
        }
      } catch (const Error&) {
        leaving.push_back(name);
        continue;
      }
      place[id] = files_.size();
      files_.push_back(name);
    }
    boxes_.resize(files_.size());
    names_.resize(files_.size());
    for (const auto& object : found.objects) {
      const auto category = found.categories.find(object.category);
      if (category == found.categories.end() || object.numbers != 4) {
        unknown.push_back("image " + std::to_string(object.image) + ", category " +
                          std::to_string(object.category));
        continue;
      }
      // One box around a crowd is no object.
      if (object.crowd || !place.contains(object.image)) continue;
      const auto* box = object.box;
      const size_t at = place[object.image];
      boxes_[at].push_back(
          {{static_cast<float>(box[0]), static_cast<float>(box[1]),
            static_cast<float>(box[0] + box[2]), static_cast<float>(box[1] + box[3])},
           0});
      names_[at].push_back(category->second);
    }
    add_finding(description_, "path that leaves the folder", std::move(leaving));
    add_finding(description_, "file that does not exist", std::move(missing));
    add_finding(description_, "annotation without box or category", std::move(unknown));
    if (files_.empty())
      throw Error(Code::not_found, "none of the listed images exists", folder_.string(),
                  "Name the folder of the images with --root");
  }

  std::vector<std::vector<std::string>> names_;
};

/// The annotation file of a folder, for its part where it has several.
fs::path annotations_in(const fs::path& folder, const std::string& part) {
  const std::string wanted = part.empty() ? "train" : part;
  const auto files = list_files(folder, [](std::string_view name) {
                       return extension_of(name) == "json" &&
                              (name.find("annotations") != std::string_view::npos ||
                               name.find("instances") != std::string_view::npos);
                     }).files;
  for (const auto& name : files)
    if (name.find(wanted) != std::string::npos) return folder / name;
  if (files.empty())
    throw Error(Code::not_found, "there is no JSON file of annotations", folder.string());
  return folder / files[0];
}

}  // namespace

DatasetPtr open_coco(const fs::path& path, const OpenOptions& options) {
  const fs::path json = fs::is_directory(path) ? annotations_in(path, options.part) : path;
  fs::path images = options.root;
  if (images.empty()) {
    images = fs::is_directory(path) ? path : json.parent_path();
    if (images.empty()) images = ".";
    if (fs::is_directory(images / "images")) images /= "images";
  }
  return std::make_shared<Coco>(json, images, options);
}

}  // namespace dais::data
