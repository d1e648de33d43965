#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/threads.h"
#include "data/files.h"
#include "data/hash.h"
#include "data/image.h"
#include "data/shards.h"
#include "data/tar.h"
#include "ir/npy.h"

namespace dais::data {

namespace fs = std::filesystem;

Task task_from_name(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Task::none); ++i)
    if (task_name(static_cast<Task>(i)) == name) return static_cast<Task>(i);
  throw Error(Code::invalid_argument, "there is no task '" + std::string(name) + "'");
}

InputKind input_kind_from_name(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(InputKind::array); ++i)
    if (input_kind_name(static_cast<InputKind>(i)) == name) return static_cast<InputKind>(i);
  throw Error(Code::invalid_argument, "there is no input '" + std::string(name) + "'");
}

namespace {

struct Part {
  std::string ending, bytes;
};
using Parts = std::vector<Part>;

std::string npy_of(const Tensor& tensor) {
  return npy_header(tensor, "a sample") +
         std::string(static_cast<const char*>(tensor.raw()), tensor.bytes());
}

Image image_of(const Tensor& tensor) {
  Image image{tensor.shape()[0],
              tensor.shape()[1],
              tensor.rank() == 3 ? static_cast<int>(tensor.shape()[2]) : 1,
              {}};
  image.pixels.assign(tensor.data<uint8_t>().begin(), tensor.data<uint8_t>().end());
  return image;
}

Part encode_input(const Dataset& dataset, int64_t index, const Tensor& input,
                  const BuildOptions& options) {
  if (dataset.description().input != InputKind::image) return {"input.npy", npy_of(input)};
  if (options.encoding == Encoding::keep && !options.resized &&
      dataset.description().task != Task::segmentation) {
    const RawSample raw = dataset.raw(index);
    if (is_image_name("a." + raw.extension))
      return {raw.extension, {raw.bytes.begin(), raw.bytes.end()}};
  }
  switch (options.encoding) {
    case Encoding::jpg: return {"jpg", encode_jpeg(image_of(input), options.quality)};
    case Encoding::pixels: return {"input.npy", npy_of(input)};
    default: return {"png", encode_png(image_of(input))};
  }
}

Parts encode_sample(const Dataset& dataset, int64_t index, const BuildOptions& options) {
  const Sample sample = dataset.read(index);
  Parts parts{encode_input(dataset, index, sample.input, options)};
  switch (dataset.description().task) {
    case Task::none: break;
    case Task::classification:
      parts.push_back({"cls", std::to_string(sample.target.data<int64_t>()[0])});
      break;
    case Task::segmentation:
      parts.push_back({"mask.png", encode_png(image_of(sample.target))});
      break;
    case Task::detection: parts.push_back({"classes.npy", npy_of(sample.classes)}); [[fallthrough]];
    default: parts.push_back({"target.npy", npy_of(sample.target)});
  }
  return parts;
}

/// One archive on its way to the disk.
class ShardWriter {
 public:
  explicit ShardWriter(const fs::path& path) : file_(path) {}

  void add(const std::string& name, const std::string& bytes) {
    write(tar_header(name, bytes.size()));
    write(bytes);
    write(std::string((kBlock - bytes.size() % kBlock) % kBlock, '\0'));
  }
  uint64_t bytes() const { return file_.position(); }
  /// Two empty blocks end an archive. Gives the checksum.
  std::string commit() {
    write(std::string(2 * kBlock, '\0'));
    file_.commit();
    return hex(hash_.finish());
  }

 private:
  static constexpr size_t kBlock = 512;

  void write(const std::string& text) {
    const Bytes bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    file_.write(bytes);
    hash_.update(bytes);
  }

  AtomicFile file_;
  Sha256 hash_;
};

class Builder {
 public:
  Builder(const Dataset& dataset, const fs::path& folder, const BuildOptions& options)
      : dataset_(dataset), folder_(folder), options_(options) {
    std::error_code problem;
    fs::create_directories(folder, problem);
    if (problem)
      throw Error(Code::unavailable, "cannot make the folder: " + problem.message(),
                  folder.string());
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ".tar" || entry.path().filename() == kShardIndex)
        throw Error(Code::invalid_argument, "the folder holds shards already", folder.string(),
                    "Use another folder, or remove them first");
    result_.unreadable.what = "unreadable sample";
  }

  BuildResult run() {
    constexpr int64_t kPiece = 256;
    const int64_t count = dataset_.size();
    for (int64_t begin = 0; begin < count; begin += kPiece) {
      const int64_t end = std::min(count, begin + kPiece);
      add_piece(begin, end);
      if (options_.progress) options_.progress(end, count);
    }
    close_shard();
    if (result_.samples == 0)
      throw Error(Code::invalid_argument, "no sample is readable", folder_.string(),
                  result_.unreadable.examples.empty() ? "" : result_.unreadable.examples[0]);
    write_index();
    return result_;
  }

 private:
  void add_piece(int64_t begin, int64_t end) {
    std::vector<Parts> parts(static_cast<size_t>(end - begin));
    std::vector<std::string> reasons(parts.size());
    parallel_for(end - begin, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        try {
          parts[static_cast<size_t>(i)] = encode_sample(dataset_, begin + i, options_);
        } catch (const std::exception& error) {
          reasons[static_cast<size_t>(i)] = error.what();
        }
      }
    });
    for (size_t i = 0; i < parts.size(); ++i) {
      if (reasons[i].empty()) {
        add_sample(parts[i]);
        continue;
      }
      constexpr size_t kShown = 5;
      ++result_.unreadable.count;
      if (result_.unreadable.examples.size() < kShown)
        result_.unreadable.examples.push_back(reasons[i]);
    }
  }

  void add_sample(const Parts& parts) {
    if (!writer_) {
      char name[32];
      std::snprintf(name, sizeof name, "shard-%06lld.tar", static_cast<long long>(result_.shards));
      name_ = name;
      writer_.emplace(folder_ / name_);
      in_shard_ = 0;
    }
    char key[32];
    std::snprintf(key, sizeof key, "%08lld", static_cast<long long>(result_.samples));
    for (const Part& part : parts) writer_->add(std::string(key) + "." + part.ending, part.bytes);
    ++result_.samples;
    ++in_shard_;
    if (writer_->bytes() >= options_.shard_bytes) close_shard();
  }

  void close_shard() {
    if (!writer_) return;
    const std::string checksum = writer_->commit();
    const uint64_t bytes = writer_->bytes();
    shards_.push_back(
        {{"file", name_}, {"samples", in_shard_}, {"bytes", bytes}, {"sha256", checksum}});
    writer_.reset();
    ++result_.shards;
    result_.bytes += bytes;
  }

  void write_index() const {
    const Description& about = dataset_.description();
    const nlohmann::json index{{"format", "dais shards"},
                               {"version", 1},
                               {"task", task_name(about.task)},
                               {"input", input_kind_name(about.input)},
                               {"input_shape", about.input_shape.vector()},
                               {"classes", about.classes},
                               {"class_count", about.class_count},
                               {"seconds_per_frame", about.seconds_per_frame},
                               {"samples", result_.samples},
                               {"shards", shards_}};
    write_file(folder_ / kShardIndex,
               index.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }

  const Dataset& dataset_;
  fs::path folder_;
  const BuildOptions& options_;
  BuildResult result_;
  std::optional<ShardWriter> writer_;
  std::string name_;
  int64_t in_shard_ = 0;
  nlohmann::json shards_ = nlohmann::json::array();
};

}  // namespace

BuildResult build_shards(const Dataset& dataset, const fs::path& folder,
                         const BuildOptions& options) {
  return Builder(dataset, folder, options).run();
}

std::vector<std::string> verify_shards(const fs::path& folder) {
  const Blob file = load_file(folder / kShardIndex, size_t{256} << 20);
  const auto index = nlohmann::json::parse(file.text(), nullptr, false);
  std::vector<std::string> wrong;
  try {
    for (const auto& shard : index.at("shards")) {
      const std::string name = shard.at("file"), wanted = shard.at("sha256");
      const auto bytes = MappedFile::open(confined_path(folder, name));
      if (hex(sha256(bytes->bytes())) != wanted) wrong.push_back(name);
    }
  } catch (const nlohmann::json::exception&) {
    throw Error(Code::invalid_argument, "not a readable index of shards",
                (folder / kShardIndex).string());
  }
  return wrong;
}

}  // namespace dais::data
