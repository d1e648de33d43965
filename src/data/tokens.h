#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/options.h"

namespace dais::data {

/// The first character of UTF-8 text, cut off from it. A byte that is no UTF-8 counts as one.
std::string_view take_character(std::string_view& text);
/// The different characters of a text in byte order.
std::vector<std::string> characters_of(std::string_view text);
/// Lower case; letters of ASCII, digits, apostrophes and everything beyond ASCII stay, all else
/// separates words by one blank.
std::string plain_words(std::string_view text);

/// Text to numbers and back. Const, for many threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Throws `invalid_argument` naming the first character outside the vocabulary.
  virtual void encode(std::string_view text, std::vector<int32_t>& out) const = 0;
  virtual std::string decode(const std::vector<int32_t>& tokens) const = 0;
  virtual int64_t size() const = 0;
  virtual const std::vector<std::string>& names() const = 0;
};

/// `sample` gives the characters where the options name none. `first` is the number of the first
/// token (1 where 0 is a blank).
std::unique_ptr<Tokenizer> make_tokenizer(const TextOptions& options, std::string_view sample,
                                          int32_t first = 0);

}  // namespace dais::data
