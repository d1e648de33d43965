#include "ir/text_scanner.h"

#include <algorithm>
#include <cctype>

namespace dais {

void TextScanner::skip() {
  while (at_ < text_.size()) {
    if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
      ++at_;
    } else if (text_[at_] == '#') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else {
      return;
    }
  }
}

bool TextScanner::take(std::string_view token) {
  skip();
  if (text_.substr(at_, token.size()) != token) return false;
  at_ += token.size();
  return true;
}

void TextScanner::expect(std::string_view token) {
  if (!take(token)) fail("'" + std::string(token) + "' is missing");
}

std::string_view TextScanner::word(std::string_view others) {
  skip();
  const size_t begin = at_;
  while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
                                others.find(text_[at_]) != std::string_view::npos))
    ++at_;
  return text_.substr(begin, at_ - begin);
}

std::string TextScanner::quoted() {
  expect("\"");
  std::string out;
  while (at_ < text_.size() && text_[at_] != '"') {
    char c = text_[at_++];
    if (c == '\\' && at_ < text_.size()) {
      c = text_[at_++];
      if (c == 'n') c = '\n';
    }
    out += c;
  }
  if (at_ == text_.size()) fail("a quoted text does not end");
  ++at_;
  return out;
}

std::string_view TextScanner::until_closing(char open, char close) {
  const size_t begin = at_;
  int depth = 1;
  for (; at_ < text_.size(); ++at_) {
    if (text_[at_] == open) ++depth;
    if (text_[at_] == close && --depth == 0) return text_.substr(begin, at_++ - begin);
  }
  at_ = begin;
  fail(std::string("'") + open + "' is never closed");
}

std::string_view TextScanner::number() { return word("+-."); }

void TextScanner::fail(const std::string& problem, const std::string& remedy) const {
  const std::string_view before = text_.substr(0, at_);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t newline = before.rfind('\n');
  const size_t column = newline == std::string_view::npos ? at_ + 1 : at_ - newline;
  throw Error(Code::invalid_argument, problem,
              "line " + std::to_string(line) + ", column " + std::to_string(column), remedy);
}

}  // namespace dais
