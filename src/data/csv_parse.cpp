#include "data/readers.h"

namespace dais::data {
namespace {

/// Splits one table. Fields without quotes are views of the text; quoted ones are unescaped into a
/// buffer that lasts for a row.
class Splitter {
 public:
  Splitter(std::string_view text, char delimiter, const std::string& where)
      : text_(text), delimiter_(delimiter), where_(where) {}

  bool next_row(std::vector<std::string_view>& fields) {
    fields.clear();
    buffers_.clear();
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) ++at_;
    if (at_ >= text_.size()) return false;
    constexpr size_t kMostFields = size_t{1} << 20;
    for (;;) {
      fields.push_back(at_ < text_.size() && text_[at_] == '"' ? quoted() : plain());
      if (fields.size() > kMostFields)
        throw Error(Code::invalid_argument, "a row has more than a million columns", where_);
      if (at_ >= text_.size()) return true;
      const char ended_by = text_[at_++];
      if (ended_by == delimiter_) continue;
      if (ended_by == '\r' && at_ < text_.size() && text_[at_] == '\n') ++at_;
      return true;
    }
  }

 private:
  std::string_view plain() {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != delimiter_ && text_[at_] != '\n' &&
           text_[at_] != '\r')
      ++at_;
    return text_.substr(begin, at_ - begin);
  }

  std::string_view quoted() {
    std::string value;
    for (++at_;; ++at_) {
      if (at_ >= text_.size())
        throw Error(Code::invalid_argument, "a quoted field does not end", where_);
      if (text_[at_] != '"') {
        value += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        value += '"';
        ++at_;
      } else {
        break;
      }
    }
    ++at_;
    // What follows the closing quote belongs to the field, as most readers take it.
    value += plain();
    buffers_.push_back(std::make_unique<std::string>(std::move(value)));
    return *buffers_.back();
  }

  std::string_view text_;
  char delimiter_;
  const std::string& where_;
  size_t at_ = 0;
  std::vector<std::unique_ptr<std::string>> buffers_;
};

}  // namespace

void parse_csv(std::string_view text, char delimiter, const std::string& where,
               const std::function<void(int64_t, std::span<const std::string_view>)>& row) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  Splitter splitter(text, delimiter, where);
  std::vector<std::string_view> fields;
  for (int64_t number = 0; splitter.next_row(fields); ++number) row(number, fields);
}

}  // namespace dais::data
