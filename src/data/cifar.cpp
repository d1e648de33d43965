#include <algorithm>
#include <cstring>

#include "data/arrays.h"
#include "data/readers.h"

namespace dais::data {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kPixels = 3 * 32 * 32;

struct Layout {
  int64_t label_bytes;  ///< CIFAR-10: the class; CIFAR-100: the coarse and the fine class
  const char* names;
};
constexpr Layout kTen{1, "batches.meta.txt"}, kHundred{2, "fine_label_names.txt"};

std::vector<std::string> part_files(const fs::path& folder, const std::string& part) {
  const bool test = part == "test";
  return list_files(folder,
                    [&](std::string_view name) {
                      if (name.find('/') != std::string_view::npos || extension_of(name) != "bin")
                        return false;
                      return test ? name.starts_with("test")
                                  : name.starts_with("data_batch") || name == "train.bin";
                    })
      .files;
}

/// The two layouts cannot be confused: no whole number of one fills a file of the other, up to far
/// more samples than there are.
Layout layout_of(size_t size, const fs::path& file) {
  const bool ten = size > 0 && size % (kPixels + kTen.label_bytes) == 0;
  const bool hundred = size > 0 && size % (kPixels + kHundred.label_bytes) == 0;
  const std::string name = file.filename().string();
  if (ten && hundred) return name == "train.bin" || name == "test.bin" ? kHundred : kTen;
  if (ten) return kTen;
  if (hundred) return kHundred;
  throw Error(Code::invalid_argument,
              "its size of " + std::to_string(size) + " bytes is no multiple of a CIFAR sample",
              file.string());
}

}  // namespace

DatasetPtr open_cifar(const fs::path& path, const OpenOptions& options) {
  const bool folder = fs::is_directory(path);
  const fs::path base = folder ? path : path.parent_path();
  std::vector<std::string> files =
      folder ? part_files(path, options.part) : std::vector{path.filename().string()};
  if (files.empty())
    throw Error(Code::not_found, "there is no data_batch_….bin, train.bin or test….bin",
                path.string());
  std::vector<uint8_t> pixels;
  std::vector<int64_t> labels;
  Layout layout = kTen;
  for (const auto& name : files) {
    const Blob file = load_file(base / name, options.max_bytes);
    const Layout found = layout_of(file.bytes.size(), base / name);
    if (!labels.empty() && found.label_bytes != layout.label_bytes)
      throw Error(Code::invalid_argument, "files of CIFAR-10 and CIFAR-100 lie side by side",
                  (base / name).string(), "Keep them in folders of their own");
    layout = found;
    const auto record = static_cast<size_t>(kPixels + layout.label_bytes);
    for (size_t at = 0; at < file.bytes.size(); at += record) {
      const uint8_t* sample = file.bytes.data() + at;
      labels.push_back(sample[layout.label_bytes - 1]);
      pixels.insert(pixels.end(), sample + layout.label_bytes, sample + record);
    }
  }
  ArraySource source;
  source.planar = true;
  source.name = files[0] + (files.size() > 1 ? "…" : "") + ", sample";
  const Blob all = blob_of(std::move(pixels));
  source.inputs = Tensor::view(DType::u8, {static_cast<int64_t>(labels.size()), 3, 32, 32},
                               const_cast<uint8_t*>(all.bytes.data()), all.owner);
  source.targets = Tensor::ints(labels);
  Description about;
  about.format = "cifar";
  about.found = std::string("CIFAR binary (") + (layout.label_bytes == 1 ? "10" : "100") +
                " classes) of " + std::to_string(files.size()) + " files";
  about.class_count = layout.label_bytes == 1 ? 10 : 100;
  if (const fs::path names = base / layout.names; fs::exists(names))
    about.classes = read_names(names);
  if (static_cast<int64_t>(about.classes.size()) != about.class_count) about.classes.clear();
  return array_dataset(std::move(source), std::move(about), options.image);
}

}  // namespace dais::data
