#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace dais {

/// Walks over text, skipping blanks and # comments; knows line and column for errors.
class TextScanner {
 public:
  explicit TextScanner(std::string_view text) : text_(text) {}

  bool at_end() {
    skip();
    return at_ == text_.size();
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  /// Takes `token` if it comes next.
  bool take(std::string_view token);
  void expect(std::string_view token);
  /// A run of letters, digits and the given others; empty when none comes next.
  std::string_view word(std::string_view others = "_");
  /// A quoted string with its escapes undone.
  std::string quoted();
  /// Text up to (not including) the bracket that closes the one just taken.
  std::string_view until_closing(char open, char close);
  /// A number's characters: digits, sign, point, exponent, inf, nan.
  std::string_view number();

  [[noreturn]] void fail(const std::string& problem, const std::string& remedy = {}) const;

 private:
  void skip();

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace dais
