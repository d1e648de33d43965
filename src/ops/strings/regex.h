#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace dais {

/// A regular expression in RE2's syntax, without backreferences or look-around (as in RE2):
/// literals, `.`, classes with ranges and negation, \d \w \s (and capitals), [:alpha:] and kin,
/// alternation, groups (capturing,
/// (?:…), (?P<name>…)), flags (?ims), repeats * + ? {n,m} and their lazy forms, ^ $ \A \z \b \B,
/// \Q…\E, \x41 \x{263a}.
///
/// Matching walks all possibilities at once: its time is bounded by pattern size times text length
/// whatever the pattern is, so untrusted patterns cannot stall a server.
class Regex {
 public:
  /// Throws `invalid_model` for a pattern that does not parse or is too large.
  explicit Regex(std::string_view pattern);
  bool full_match(std::string_view text) const;

  struct Range {
    char32_t first, last;
  };
  struct State {
    enum class Kind : uint8_t {
      set,
      split,
      jump,
      begin,
      end,
      begin_line,
      end_line,
      word,
      not_word,
      done
    } kind;
    bool negated = false;            ///< set: everything but the ranges
    std::vector<Range> ranges = {};  ///< set
    uint32_t next = 0, other = 0;
  };

 private:
  struct Position {
    char32_t before, after;  ///< code points around; kNone at the ends
  };
  void follow(uint32_t state, const Position& at, std::vector<bool>& marked,
              std::vector<uint32_t>& out) const;

  std::vector<State> states_;
  uint32_t start_ = 0;
};

}  // namespace dais
