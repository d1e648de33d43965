#include <algorithm>
#include <cmath>

#include "data/readers.h"
#include "data/tokens.h"

namespace dais::data {

namespace fs = std::filesystem;

namespace {

/// Windows of a long text; each token's target is the one after it.
class TextWindows final : public Dataset {
 public:
  TextWindows(const fs::path& path, const OpenOptions& options) : path_(path.string()) {
    window_ = options.text.window;
    stride_ = options.text.stride > 0 ? options.text.stride : window_;
    if (window_ < 1)
      throw Error(Code::invalid_argument, "windows of " + std::to_string(window_) + " tokens",
                  path_, "Use at least 1");
    Blob text = whole_text(path, options);
    const auto tokenizer = make_tokenizer(options.text, text.text());
    try {
      tokenizer->encode(text.text(), tokens_);
    } catch (const Error& error) {
      throw error.at(path_);
    }
    keep_part(options);
    if (static_cast<int64_t>(tokens_.size()) <= window_)
      throw Error(Code::invalid_argument,
                  std::to_string(tokens_.size()) + " tokens do not fill one window of " +
                      std::to_string(window_) + " and the token after it",
                  path_, "Use a shorter window");
    size_ = (static_cast<int64_t>(tokens_.size()) - window_ - 1) / stride_ + 1;
    describe(options, *tokenizer);
  }

  int64_t size() const override { return size_; }
  int64_t length(int64_t) const override { return window_; }
  std::string name(int64_t index) const override {
    return path_ + ", token " + std::to_string(index * stride_);
  }
  Sample read(int64_t index) const override {
    const auto* from = tokens_.data() + index * stride_;
    Sample sample{Tensor(DType::i64, {window_}), Tensor(DType::i64, {window_}), {}};
    std::copy_n(from, window_, sample.input.storage<int64_t>());
    std::copy_n(from + 1, window_, sample.target.storage<int64_t>());
    return sample;
  }
  RawSample raw(int64_t index) const override {
    const auto* from = reinterpret_cast<const uint8_t*>(tokens_.data() + index * stride_);
    return {{from, static_cast<size_t>(window_) * sizeof(int32_t)}, "", nullptr};
  }

 private:
  /// A file, or all text files of a folder one after the other.
  static Blob whole_text(const fs::path& path, const OpenOptions& options) {
    if (!fs::is_directory(path)) return load_file(path, options.max_bytes);
    std::vector<uint8_t> all;
    for (const auto& name : list_files(path, [](std::string_view file) {
                              return extension_of(file) == "txt";
                            }).files) {
      const Blob file = load_file(path / name, options.max_bytes);
      if (all.size() + file.bytes.size() > options.max_bytes)
        throw Error(Code::exhausted, "the texts are larger than the limit", path.string());
      all.insert(all.end(), file.bytes.begin(), file.bytes.end());
      if (!all.empty() && all.back() != '\n') all.push_back('\n');
    }
    return blob_of(std::move(all));
  }

  /// The end of the text is held out for the parts that are not trained on.
  void keep_part(const OpenOptions& options) {
    const double held = options.text.held_out;
    if (!(held >= 0 && held < 1))
      throw Error(Code::invalid_argument, "a held-out share of " + std::to_string(held), path_,
                  "Use a share from 0 to 1");
    const bool train = options.part.empty() || options.part == "train";
    const auto count = static_cast<double>(tokens_.size());
    const auto cut = static_cast<int64_t>(std::floor(count * (1 - held)));
    if (train)
      tokens_.resize(static_cast<size_t>(cut));
    else
      tokens_.erase(tokens_.begin(), tokens_.begin() + cut);
  }

  void describe(const OpenOptions& options, const Tokenizer& tokenizer) {
    constexpr const char* kKinds[] = {"bytes", "characters", "SentencePiece pieces"};
    description_.format = "text";
    description_.task = Task::next_token;
    description_.input = InputKind::tokens;
    description_.input_shape = {window_};
    description_.class_count = tokenizer.size();
    description_.classes = tokenizer.names();
    description_.found = "text of " + std::to_string(tokens_.size()) + " " +
                         kKinds[static_cast<int>(options.text.tokens)] + ", " +
                         std::to_string(tokenizer.size()) + " different";
  }

  std::string path_;
  std::vector<int32_t> tokens_;
  int64_t window_ = 0, stride_ = 0, size_ = 0;
};

}  // namespace

DatasetPtr open_text(const fs::path& path, const OpenOptions& options) {
  return std::make_shared<TextWindows>(path, options);
}

}  // namespace dais::data
