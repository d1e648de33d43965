#include <algorithm>
#include <map>

#include "data/arrays.h"
#include "data/readers.h"
#include "ir/npy.h"
#include "ir/stored.h"

namespace dais::data {

namespace fs = std::filesystem;

namespace {

/// Elements where they lie, when they are in order and aligned; a copy otherwise.
Tensor npy_tensor(const Blob& file, const std::string& where) {
  const NpyView view = view_npy(file.bytes, where);
  if (view.fortran_order) return parse_npy(file.bytes, where);
  return stored_tensor(view.data, view.dtype, view.shape, file.owner);
}

using Arrays = std::map<std::string, Blob>;

Arrays arrays_at(const fs::path& path, const OpenOptions& options) {
  Arrays arrays;
  const auto add_file = [&](const fs::path& file) {
    arrays[file.stem().string()] = load_file(file, options.max_bytes);
  };
  if (fs::is_directory(path)) {
    for (const auto& name :
         list_files(path, [](std::string_view name) { return extension_of(name) == "npy"; }).files)
      add_file(path / name);
    return arrays;
  }
  if (extension_of(path.string()) == "npy") {
    add_file(path);
    return arrays;
  }
  const Blob file = load_file(path, options.max_bytes);
  for (auto& member : parse_zip(file, options.max_bytes, path.string())) {
    std::string name = member.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    arrays[name] = std::move(member.data);
  }
  return arrays;
}

std::string names_of(const Arrays& arrays) {
  std::string names;
  for (const auto& [name, data] : arrays) names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "none" : names;
}

/// The array asked for, or the first of the usual names, with the part's ending tried first.
std::string pick(const Arrays& arrays, const std::string& asked, const std::string& part,
                 std::initializer_list<const char*> usual) {
  if (!asked.empty()) return asked;
  for (const char* name : usual)
    for (const std::string& full :
         {std::string(name) + "_" + (part.empty() ? "train" : part),
          (part.empty() ? "train" : part) + "_" + name, std::string(name)})
      if (arrays.contains(full)) return full;
  return {};
}

}  // namespace

DatasetPtr open_numpy(const fs::path& path, const OpenOptions& options) {
  const Arrays arrays = arrays_at(path, options);
  std::string input = pick(arrays, options.input_key, options.part,
                           {"x", "X", "images", "data", "inputs", "input", "features"});
  std::string target = pick(arrays, options.target_key, options.part,
                            {"y", "Y", "labels", "label", "targets", "target", "masks"});
  if (input.empty() && arrays.size() == 1) input = arrays.begin()->first;
  const auto get = [&](const std::string& name) {
    const auto found = arrays.find(name);
    if (found == arrays.end())
      throw Error(Code::invalid_argument,
                  name.empty() ? "no array has a usual name of inputs" : "no array '" + name + "'",
                  path.string(),
                  "Name the arrays of inputs and targets; there are: " + names_of(arrays));
    return npy_tensor(found->second, path.string() + ": " + name);
  };
  ArraySource source;
  source.inputs = get(input);
  if (!target.empty()) source.targets = get(target);
  const Shape& shape = source.inputs.shape();
  source.planar = shape.rank() == 4 && (shape[1] == 1 || shape[1] == 3) && shape[3] > 4;
  source.name = path.filename().string() + ", sample";
  Description about;
  about.format = "numpy";
  about.found = "NumPy array '" + input + "' " + source.inputs.describe() +
                (target.empty() ? "" : " with targets '" + target + "'");
  if (!options.labels.empty()) {
    about.classes = read_names(options.labels);
    about.class_count = static_cast<int64_t>(about.classes.size());
  }
  return array_dataset(std::move(source), std::move(about), options.image);
}

}  // namespace dais::data
