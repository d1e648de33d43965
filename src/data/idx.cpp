#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "data/arrays.h"
#include "data/readers.h"

namespace dais::data {

namespace fs = std::filesystem;

namespace {

std::optional<DType> idx_dtype(uint8_t code) {
  switch (code) {
    case 0x08: return DType::u8;
    case 0x09: return DType::i8;
    case 0x0B: return DType::i16;
    case 0x0C: return DType::i32;
    case 0x0D: return DType::f32;
    case 0x0E: return DType::f64;
    default: return std::nullopt;
  }
}

/// Turns each element of `size` bytes from big-endian.
void copy_turned(const uint8_t* from, uint8_t* to, size_t count, size_t size) {
  for (size_t i = 0; i < count; ++i)
    for (size_t k = 0; k < size; ++k) to[i * size + k] = from[i * size + size - 1 - k];
}

}  // namespace

Tensor parse_idx(const Blob& file, const std::string& where) {
  const auto refuse = [&](const std::string& what) {
    throw Error(Code::invalid_argument, "not a readable IDX file: " + what, where);
  };
  const Bytes bytes = file.bytes;
  if (bytes.size() < 4 || bytes[0] != 0 || bytes[1] != 0) refuse("its first bytes are wrong");
  const auto dtype = idx_dtype(bytes[2]);
  const size_t rank = bytes[3], begin = 4 + 4 * rank;
  if (!dtype) refuse("its element type is " + std::to_string(bytes[2]));
  if (rank < 1 || rank > kMaxRank) refuse("it has " + std::to_string(rank) + " axes");
  if (bytes.size() < begin) refuse("it ends early");
  Shape shape;
  uint64_t elements = 1;
  for (size_t i = 0; i < rank; ++i) {
    const uint8_t* at = bytes.data() + 4 + 4 * i;
    const uint32_t size = uint32_t{at[0]} << 24 | at[1] << 16 | at[2] << 8 | at[3];
    shape.push_back(size);
    elements *= size;
    // Each factor is below 2^32, so the product cannot wrap before this refuses it.
    if (elements > bytes.size())
      refuse("its sizes " + shape.text() + " need more data than it has");
  }
  const size_t size = dtype_size(*dtype);
  if (elements * size != bytes.size() - begin)
    refuse("its sizes " + shape.text() + " need " + std::to_string(elements * size) +
           " bytes of data, it has " + std::to_string(bytes.size() - begin));
  if (size == 1)
    return Tensor::view(*dtype, shape, const_cast<uint8_t*>(bytes.data() + begin), file.owner);
  Tensor out(*dtype, shape);
  copy_turned(bytes.data() + begin, out.storage<uint8_t>(), elements, size);
  return out;
}

namespace {

/// The file of labels that belongs to one of images: same name with other words.
std::string labels_name(std::string name) {
  const auto replace = [&](std::string_view from, std::string_view to) {
    if (const size_t at = name.find(from); at != std::string::npos)
      name.replace(at, from.size(), to);
  };
  replace("images", "labels");
  replace("idx3", "idx1");
  return name;
}

/// The file of images of a part: MNIST calls them train-images… and t10k-images….
fs::path find_images(const fs::path& folder, const std::string& part) {
  const std::vector<std::string> starts =
      part == "test" ? std::vector<std::string>{"t10k-images", "test-images"}
                     : std::vector<std::string>{part.empty() ? "train-images" : part + "-images"};
  const auto listing = list_files(folder, [&](std::string_view name) {
    return std::any_of(starts.begin(), starts.end(),
                       [&](const auto& start) { return name.starts_with(start); });
  });
  if (listing.files.empty())
    throw Error(Code::not_found, "there is no file " + starts[0] + "…", folder.string(),
                "Name the file of images instead of its folder");
  return folder / listing.files[0];
}

}  // namespace

DatasetPtr open_idx(const fs::path& path, const OpenOptions& options) {
  const fs::path images = fs::is_directory(path) ? find_images(path, options.part) : path;
  const fs::path labels = images.parent_path() / labels_name(images.filename().string());
  ArraySource source;
  source.inputs = parse_idx(load_file(images, options.max_bytes), images.string());
  source.name = images.filename().string() + ", sample";
  Description about;
  about.format = "idx";
  about.found = "IDX file " + images.filename().string();
  if (labels != images && fs::exists(labels)) {
    source.targets = parse_idx(load_file(labels, options.max_bytes), labels.string());
    about.found += " with labels " + labels.filename().string();
  }
  if (!options.labels.empty()) {
    about.classes = read_names(options.labels);
    about.class_count = static_cast<int64_t>(about.classes.size());
  }
  return array_dataset(std::move(source), std::move(about), options.image);
}

}  // namespace dais::data
