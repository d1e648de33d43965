#include "train/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "ir/stored.h"

namespace dais::train {
namespace {

using nlohmann::json;

constexpr size_t kLargestHeader = 100'000'000;  // as the format's own reader has it

struct TypeName {
  DType dtype;
  const char* name;
};
constexpr TypeName kTypes[] = {
    {DType::f64, "F64"},        {DType::f32, "F32"},
    {DType::f16, "F16"},        {DType::bf16, "BF16"},
    {DType::i64, "I64"},        {DType::i32, "I32"},
    {DType::i16, "I16"},        {DType::i8, "I8"},
    {DType::u64, "U64"},        {DType::u32, "U32"},
    {DType::u16, "U16"},        {DType::u8, "U8"},
    {DType::boolean, "BOOL"},   {DType::f8e4m3fn, "F8_E4M3"},
    {DType::f8e5m2, "F8_E5M2"},
};

const char* name_of(DType dtype, const std::string& tensor) {
  for (const TypeName& entry : kTypes)
    if (entry.dtype == dtype) return entry.name;
  throw Error(Code::unsupported,
              "safetensors has no element type " + std::string(dtype_name(dtype)),
              "tensor '" + tensor + "'");
}

/// One file being read: every failure names it.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path)
      : path_(path), file_(MappedFile::open(path)), bytes_(file_->bytes()) {}

  TensorFile read() {
    static_assert(std::endian::native == std::endian::little);
    require(bytes_.size() >= 8, "is shorter than its own length field");
    uint64_t length = 0;
    std::memcpy(&length, bytes_.data(), 8);
    require(length <= kLargestHeader && length <= bytes_.size() - 8,
            "has a header that runs past it");
    const auto begin = bytes_.begin() + 8;
    const json header =
        json::parse(begin, begin + static_cast<std::ptrdiff_t>(length), nullptr, false);
    require(header.is_object(), "has a header that is no JSON object");
    data_ = bytes_.subspan(8 + length);
    TensorFile out;
    for (const auto& [name, entry] : header.items())
      name == "__metadata__" ? read_metadata(entry, out) : read_entry(name, entry);
    place(out);
    return out;
  }

 private:
  struct Entry {
    std::string name;
    DType dtype;
    Shape shape;
    uint64_t begin, end;
  };

  void require(bool holds, const std::string& problem) const {
    if (!holds)
      throw Error(Code::invalid_model, "the safetensors file " + problem, path_.string(),
                  "Take another copy of the file");
  }

  void read_metadata(const json& entry, TensorFile& out) const {
    require(entry.is_object(), "has metadata that are no object");
    for (const auto& [key, value] : entry.items()) {
      require(value.is_string(), "has metadata that are no text");
      out.metadata[key] = value.get<std::string>();
    }
  }

  uint64_t number(const json& value, const std::string& name) const {
    require(value.is_number_unsigned(), "has an entry '" + name + "' with a bad number");
    return value.get<uint64_t>();
  }

  void read_entry(const std::string& name, const json& entry) {
    const std::string place = "has an entry '" + name + "' ";
    require(entry.is_object() && entry.contains("dtype") && entry.contains("shape") &&
                entry.contains("data_offsets"),
            place + "without dtype, shape or data_offsets");
    require(entry["dtype"].is_string(), place + "with a bad type");
    const auto type =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& known) {
          return entry["dtype"].get_ref<const std::string&>() == known.name;
        });
    require(type != std::end(kTypes), place + "of an unknown type");
    const json &sizes = entry["shape"], &offsets = entry["data_offsets"];
    require(sizes.is_array() && sizes.size() <= kMaxRank, place + "with a bad shape");
    require(offsets.is_array() && offsets.size() == 2, place + "with bad offsets");
    Shape shape;
    uint64_t bytes = dtype_size(type->dtype);
    for (const json& size : sizes) {
      const uint64_t n = number(size, name);
      require(n <= data_.size() && (n == 0 || bytes <= (uint64_t{1} << 62) / n),
              place + "larger than the file");
      bytes *= n;
      shape.push_back(static_cast<int64_t>(n));
    }
    const uint64_t begin = number(offsets[0], name), end = number(offsets[1], name);
    require(begin <= end && end <= data_.size(), place + "outside the file");
    require(end - begin == bytes, place + "whose size is not that of its shape");
    entries_.push_back({name, type->dtype, shape, begin, end});
  }

  /// The format wants the data without gaps and overlaps.
  void place(TensorFile& out) {
    std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    uint64_t at = 0;
    for (const Entry& entry : entries_) {
      require(entry.begin == at, "has overlapping data or gaps before '" + entry.name + "'");
      at = entry.end;
      out.tensors.emplace_back(entry.name, view(entry));
    }
    require(at == data_.size(), "has bytes that belong to no tensor");
  }

  Tensor view(const Entry& entry) const {
    return stored_tensor(data_.subspan(entry.begin, entry.end - entry.begin), entry.dtype,
                         entry.shape, file_);
  }

  std::filesystem::path path_;
  std::shared_ptr<const MappedFile> file_;
  Bytes bytes_, data_;
  std::vector<Entry> entries_;
};

}  // namespace

const Tensor* TensorFile::find(const std::string& name) const {
  for (const auto& [key, tensor] : tensors)
    if (key == name) return &tensor;
  return nullptr;
}

void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  json header = json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    if (header.contains(name))
      throw Error(Code::internal, "two tensors of one name for a safetensors file", name);
    const uint64_t end = at + tensor.bytes();
    header[name] = {{"dtype", name_of(tensor.dtype(), name)},
                    {"shape", tensor.shape().vector()},
                    {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  AtomicFile file(path);
  file.write({reinterpret_cast<const uint8_t*>(&length), sizeof length});
  file.write({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  for (const auto& [name, tensor] : tensors)
    if (tensor.bytes() > 0) file.write({static_cast<const uint8_t*>(tensor.raw()), tensor.bytes()});
  file.commit(true);
}

TensorFile read_safetensors(const std::filesystem::path& path) { return Reader(path).read(); }

}  // namespace dais::train
