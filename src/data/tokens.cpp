#include "data/tokens.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <set>
#include <unordered_map>

#include "base/error.h"

namespace dais::data {

std::string_view take_character(std::string_view& text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
  if (lead >= 0xf5) size = 1;
  for (size_t i = 1; i < size; ++i)
    if (i >= text.size() || (static_cast<uint8_t>(text[i]) & 0xc0) != 0x80) size = 1;
  const std::string_view character = text.substr(0, size);
  text.remove_prefix(size);
  return character;
}

std::vector<std::string> characters_of(std::string_view text) {
  // Single bytes are by far the most: a table before the set.
  std::array<bool, 256> single{};
  std::set<std::string, std::less<>> longer;
  while (!text.empty()) {
    const auto character = take_character(text);
    if (character.size() == 1)
      single[static_cast<uint8_t>(character[0])] = true;
    else if (!longer.contains(character))
      longer.emplace(character);
  }
  std::vector<std::string> all;
  for (size_t i = 0; i < single.size(); ++i)
    if (single[i]) all.emplace_back(1, static_cast<char>(i));
  all.insert(all.end(), longer.begin(), longer.end());
  std::sort(all.begin(), all.end());
  return all;
}

std::string plain_words(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    const auto byte = static_cast<uint8_t>(letter);
    const bool upper = letter >= 'A' && letter <= 'Z';
    const bool kept = upper || (letter >= 'a' && letter <= 'z') ||
                      (letter >= '0' && letter <= '9') || letter == '\'' || byte >= 0x80;
    if (kept)
      out += upper ? static_cast<char>(letter - 'A' + 'a') : letter;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  if (out.ends_with(' ')) out.pop_back();
  return out;
}

namespace {

class ByteTokens final : public Tokenizer {
 public:
  explicit ByteTokens(int32_t first) : first_(first) {
    // Names are text: bytes that are none alone get the form that SentencePiece gives them.
    for (int i = 0; i < 256; ++i) {
      char name[8] = {static_cast<char>(i)};
      if (i >= 0x80) std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(i));
      names_.emplace_back(name, i >= 0x80 ? std::strlen(name) : 1);
    }
  }
  void encode(std::string_view text, std::vector<int32_t>& out) const override {
    for (const char letter : text) out.push_back(static_cast<uint8_t>(letter) + first_);
  }
  std::string decode(const std::vector<int32_t>& tokens) const override {
    std::string text;
    for (const int32_t token : tokens)
      if (token >= first_ && token - first_ < 256) text += static_cast<char>(token - first_);
    return text;
  }
  int64_t size() const override { return 256 + first_; }
  const std::vector<std::string>& names() const override { return names_; }

 private:
  int32_t first_;
  std::vector<std::string> names_;
};

class CharacterTokens final : public Tokenizer {
 public:
  CharacterTokens(std::vector<std::string> names, int32_t first)
      : first_(first), names_(std::move(names)) {
    single_.fill(-1);
    for (size_t i = 0; i < names_.size(); ++i) {
      const auto number = static_cast<int32_t>(i) + first;
      if (names_[i].size() == 1)
        single_[static_cast<uint8_t>(names_[i][0])] = number;
      else
        longer_.emplace(names_[i], number);
    }
  }
  void encode(std::string_view text, std::vector<int32_t>& out) const override {
    while (!text.empty()) {
      const auto character = take_character(text);
      int32_t number = -1;
      if (character.size() == 1) {
        number = single_[static_cast<uint8_t>(character[0])];
      } else if (const auto found = longer_.find(std::string(character)); found != longer_.end()) {
        number = found->second;
      }
      if (number < 0)
        throw Error(Code::invalid_argument,
                    "the character '" + std::string(character) + "' is not in the vocabulary", {},
                    "Use the vocabulary of all parts of the data");
      out.push_back(number);
    }
  }
  std::string decode(const std::vector<int32_t>& tokens) const override {
    std::string text;
    for (const int32_t token : tokens) {
      const int64_t place = int64_t{token} - first_;
      if (place >= 0 && place < static_cast<int64_t>(names_.size()))
        text += names_[static_cast<size_t>(place)];
    }
    return text;
  }
  int64_t size() const override { return static_cast<int64_t>(names_.size()) + first_; }
  const std::vector<std::string>& names() const override { return names_; }

 private:
  int32_t first_;
  std::vector<std::string> names_;
  std::array<int32_t, 256> single_;
  std::unordered_map<std::string, int32_t> longer_;
};

/// Pieces of a SentencePiece model. Lines are encoded one by one, with the model's end between
/// them.
class PieceTokens final : public Tokenizer {
 public:
  PieceTokens(const std::filesystem::path& model, int32_t first) : first_(first) {
    const auto status = processor_.Load(model.string());
    if (!status.ok())
      throw Error(Code::invalid_argument,
                  "not a readable SentencePiece model: " + status.ToString(), model.string(),
                  "Train one with spm_train");
    for (int i = 0; i < processor_.GetPieceSize(); ++i) names_.push_back(processor_.IdToPiece(i));
  }
  void encode(std::string_view text, std::vector<int32_t>& out) const override {
    bool line_before = false;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      if (line_before && processor_.eos_id() >= 0) out.push_back(processor_.eos_id() + first_);
      std::vector<int> pieces;
      const auto status = processor_.Encode({text.data(), end}, &pieces);
      if (!status.ok()) throw Error(Code::invalid_argument, "SentencePiece: " + status.ToString());
      for (const int piece : pieces) out.push_back(piece + first_);
      text.remove_prefix(std::min(text.size(), end + 1));
      line_before = true;
    }
  }
  std::string decode(const std::vector<int32_t>& tokens) const override {
    std::vector<int> pieces;
    for (const int32_t token : tokens)
      if (token >= first_ && token - first_ < processor_.GetPieceSize())
        pieces.push_back(token - first_);
    std::string text;
    return processor_.Decode(pieces, &text).ok() ? text : std::string();
  }
  int64_t size() const override { return static_cast<int64_t>(names_.size()) + first_; }
  const std::vector<std::string>& names() const override { return names_; }

 private:
  int32_t first_;
  sentencepiece::SentencePieceProcessor processor_;
  std::vector<std::string> names_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(const TextOptions& options, std::string_view sample,
                                          int32_t first) {
  switch (options.tokens) {
    case Tokens::byte: return std::make_unique<ByteTokens>(first);
    case Tokens::sentencepiece:
      if (options.model.empty())
        throw Error(Code::invalid_argument, "SentencePiece needs a model", {},
                    "Name the file with --tokens-model");
      return std::make_unique<PieceTokens>(options.model, first);
    case Tokens::character: break;
  }
  auto names = options.vocabulary.empty() ? characters_of(sample) : options.vocabulary;
  return std::make_unique<CharacterTokens>(std::move(names), first);
}

}  // namespace dais::data
