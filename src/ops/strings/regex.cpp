// Thompson's construction: the pattern becomes a small machine whose states are walked all at once.
// Repeats with counts are unrolled; the number of states is bounded so that a short pattern cannot
// ask for much memory.
#include "ops/strings/regex.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "ops/strings/utf8.h"

namespace dais {
namespace {

using State = Regex::State;
using Kind = State::Kind;
using Ranges = std::vector<Regex::Range>;

constexpr char32_t kNone = 0xffffffff, kLast = 0x10ffff;
constexpr size_t kMaxStates = 20000, kMaxDepth = 200;
constexpr int kMaxRepeat = 1000;

bool is_word(char32_t point) {
  return (point >= '0' && point <= '9') || (point >= 'A' && point <= 'Z') ||
         (point >= 'a' && point <= 'z') || point == '_';
}

Ranges complement(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end(), [](auto a, auto b) { return a.first < b.first; });
  Ranges out;
  char32_t next = 0;
  for (const auto& range : ranges) {
    if (range.first > next) out.push_back({next, range.first - 1});
    next = std::max<char32_t>(next, range.last + 1);
  }
  if (next <= kLast) out.push_back({next, kLast});
  return out;
}

/// \d, \w, \s; nullopt for other letters.
std::optional<Ranges> letter_class(char32_t letter) {
  switch (letter) {
    case 'd': return Ranges{{'0', '9'}};
    case 'w': return Ranges{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    case 's': return Ranges{{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
    case 'D':
    case 'W':
    case 'S': return complement(*letter_class(letter + ('a' - 'A')));
    default: return std::nullopt;
  }
}

std::optional<Ranges> named_class(std::u32string_view name) {
  const std::pair<std::u32string_view, Ranges> known[] = {
      {U"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {U"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {U"ascii", {{0, 0x7f}}},
      {U"blank", {{'\t', '\t'}, {' ', ' '}}},
      {U"cntrl", {{0, 0x1f}, {0x7f, 0x7f}}},
      {U"digit", {{'0', '9'}}},
      {U"graph", {{'!', '~'}}},
      {U"lower", {{'a', 'z'}}},
      {U"print", {{' ', '~'}}},
      {U"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {U"space", {{'\t', '\r'}, {' ', ' '}}},
      {U"upper", {{'A', 'Z'}}},
      {U"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
      {U"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
  };
  for (const auto& [key, ranges] : known)
    if (key == name) return ranges;
  return std::nullopt;
}

/// Part of the machine with one entry; `ends` are the states whose `next` is still open.
struct Piece {
  uint32_t start;
  std::vector<uint32_t> ends;
};

class Parser {
 public:
  Parser(std::string_view pattern, std::vector<State>& states)
      : pattern_(pattern), states_(states) {
    while (!pattern.empty()) text_ += take_code_point(pattern);
    spell_out_quotes();
  }

  uint32_t parse() {
    Piece whole = alternatives(0);
    if (at_ < text_.size()) fail("an unmatched )");
    connect(whole, add({.kind = Kind::done}));
    return whole.start;
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(Code::invalid_model,
                "pattern '" + pattern_.substr(0, 80) + "' has " + problem + " at position " +
                    std::to_string(at_),
                "", "Write it in RE2's syntax");
  }

  /// Replaces \Q…\E by the same characters, each escaped where it needs to be.
  void spell_out_quotes() {
    std::u32string out;
    bool quoted = false;
    for (size_t i = 0; i < text_.size(); ++i) {
      const char32_t next = i + 1 < text_.size() ? text_[i + 1] : kNone;
      if (text_[i] == '\\' && next == (quoted ? 'E' : 'Q')) {
        quoted = !quoted;
        ++i;
      } else if (quoted) {
        if (text_[i] < 0x80 && !is_word(text_[i])) out += '\\';
        out += text_[i];
      } else {
        out += text_[i];
        if (text_[i] == '\\' && next != kNone) out += text_[++i];
      }
    }
    text_ = std::move(out);
  }

  bool more() const { return at_ < text_.size(); }
  char32_t peek() const { return more() ? text_[at_] : kNone; }
  bool accept(char32_t point) {
    if (peek() != point) return false;
    ++at_;
    return true;
  }
  char32_t take() {
    if (!more()) fail("an early end");
    return text_[at_++];
  }

  uint32_t add(State state) {
    if (states_.size() >= kMaxStates) fail("too many repeats, or is too long,");
    states_.push_back(std::move(state));
    return static_cast<uint32_t>(states_.size() - 1);
  }
  /// An open end is a state number; its `other` branch when kOther is added.
  static constexpr uint32_t kOther = 0x80000000;
  void connect(const Piece& piece, uint32_t to) {
    for (const uint32_t end : piece.ends)
      (end & kOther ? states_[end & ~kOther].other : states_[end].next) = to;
  }
  Piece single(State state) {
    const uint32_t at = add(std::move(state));
    return {at, {at}};
  }
  Piece empty() { return single({.kind = Kind::jump}); }

  Piece set(Ranges ranges, bool negated = false) {
    if (fold_case_) {
      // Both cases of each letter; long ranges are folded for their ASCII part only.
      const Ranges given = ranges;
      for (const auto& range : given)
        for (char32_t point = range.first;
             point <= std::min<char32_t>(range.last, range.first + 0x17f); ++point)
          for (const char32_t other : {lower_case(point), upper_case(point)})
            if (other != point) ranges.push_back({other, other});
    }
    return single({.kind = Kind::set, .negated = negated, .ranges = std::move(ranges)});
  }

  Piece alternatives(size_t depth) {
    if (depth > kMaxDepth) fail("groups nested too deeply");
    Piece out = sequence(depth);
    while (accept('|')) {
      const Piece right = sequence(depth);
      const uint32_t split = add({.kind = Kind::split, .next = out.start, .other = right.start});
      out.start = split;
      out.ends.insert(out.ends.end(), right.ends.begin(), right.ends.end());
    }
    return out;
  }

  Piece sequence(size_t depth) {
    std::optional<Piece> out;
    while (more() && peek() != '|' && peek() != ')') {
      Piece next = repeated(depth);
      if (out) {
        connect(*out, next.start);
        out->ends = std::move(next.ends);
      } else {
        out = std::move(next);
      }
    }
    return out ? *out : empty();
  }

  struct Count {
    int least, most;  ///< most -1: no bound
  };
  std::optional<Count> count() {
    if (accept('*')) return Count{0, -1};
    if (accept('+')) return Count{1, -1};
    if (accept('?')) return Count{0, 1};
    if (peek() != '{') return std::nullopt;
    // Braces that do not hold numbers stand for themselves.
    const size_t saved = at_++;
    auto number = [&]() -> int {
      int value = -1;
      while (peek() >= '0' && peek() <= '9' && value <= kMaxRepeat)
        value = std::max(value, 0) * 10 + static_cast<int>(take() - '0');
      return value;
    };
    Count out{number(), 0};
    out.most = accept(',') ? number() : out.least;
    if (out.least < 0 || !accept('}')) {
      at_ = saved;
      return std::nullopt;
    }
    if (out.least > kMaxRepeat || out.most > kMaxRepeat || (out.most >= 0 && out.most < out.least))
      fail("a repeat count out of range");
    return out;
  }

  Piece repeated(size_t depth) {
    const size_t from = at_;
    Piece piece = atom(depth);
    size_t to = at_;
    while (const auto times = count()) {
      accept('?');  // lazy or not makes no difference to a full match
      piece = repeat(std::move(piece), *times, from, to, depth);
      to = at_;
    }
    return piece;
  }

  /// Parses the text of the repeated piece again for each further copy.
  Piece copy(size_t from, size_t to, size_t depth) {
    const size_t saved = at_;
    std::u32string rest = text_.substr(to);
    text_.resize(to);
    at_ = from;
    Piece out = sequence(depth + 1);
    text_ += rest;
    at_ = saved;
    return out;
  }

  Piece repeat(Piece first, Count times, size_t from, size_t to, size_t depth) {
    if (depth > kMaxDepth) fail("repeats nested too deeply");
    if (times.most == 0) return empty();
    std::optional<Piece> out;
    auto append = [&](Piece next) {
      if (out) connect(*out, next.start);
      out = Piece{out ? out->start : next.start, std::move(next.ends)};
    };
    bool used = false;
    auto one = [&] {
      if (used) return copy(from, to, depth);
      used = true;
      return first;
    };
    for (int i = 0; i < times.least; ++i) append(one());
    if (times.most < 0) {
      Piece body = one();
      const uint32_t split = add({.kind = Kind::split, .next = body.start});
      connect(body, split);
      append({split, {split | kOther}});
    } else {
      std::vector<uint32_t> skips;
      for (int i = times.least; i < times.most; ++i) {
        Piece body = one();
        const uint32_t split = add({.kind = Kind::split, .next = body.start});
        skips.push_back(split | kOther);
        append({split, std::move(body.ends)});
      }
      out->ends.insert(out->ends.end(), skips.begin(), skips.end());
    }
    return *out;
  }

  Piece atom(size_t depth) {
    const char32_t point = take();
    switch (point) {
      case '(': return group(depth);
      case '[': return bracket();
      case '.': return dot_all_ ? set({}, true) : set({{'\n', '\n'}}, true);
      case '^': return single({.kind = lines_ ? Kind::begin_line : Kind::begin});
      case '$': return single({.kind = lines_ ? Kind::end_line : Kind::end});
      case '*':
      case '+':
      case '?': fail("nothing to repeat");
      case '\\': return escape();
      default: return set({{point, point}});
    }
  }

  Piece group(size_t depth) {
    const bool fold_case = fold_case_, dot_all = dot_all_, lines = lines_;
    if (accept('?')) {
      if (accept('P') || peek() == '<') {
        if (!accept('<')) fail("a group of unknown kind");
        while (take() != '>') {
        }
      } else if (!flags()) {
        return empty();
      }
    }
    Piece out = alternatives(depth + 1);
    if (!accept(')')) fail("an unclosed group");
    // Flags end with the group that sets them.
    fold_case_ = fold_case;
    dot_all_ = dot_all;
    lines_ = lines;
    return out;
  }

  /// The letters of (?ims-ims) or (?ims-ims:…); false when the group ends with them.
  bool flags() {
    bool on = true;
    for (;;) switch (take()) {
        case 'i': fold_case_ = on; break;
        case 'm': lines_ = on; break;
        case 's': dot_all_ = on; break;
        case 'U': break;
        case '-': on = false; break;
        case ':': return true;
        case ')': return false;
        default: fail("a group of unknown kind");
      }
  }

  Piece escape() {
    const char32_t letter = peek();
    if (accept('A')) return single({.kind = Kind::begin});
    if (accept('z')) return single({.kind = Kind::end});
    if (accept('b')) return single({.kind = Kind::word});
    if (accept('B')) return single({.kind = Kind::not_word});
    if (accept('C')) return set({}, true);
    if (const auto ranges = letter_class(letter)) {
      ++at_;
      return set(*ranges);
    }
    const char32_t point = escaped_point();
    return set({{point, point}});
  }

  char32_t escaped_point() {
    const char32_t letter = take();
    switch (letter) {
      case 'a': return '\a';
      case 'f': return '\f';
      case 'n': return '\n';
      case 'r': return '\r';
      case 't': return '\t';
      case 'v': return '\v';
      case 'x': return hexadecimal();
      case '0': return octal();
      default:
        if (is_word(letter)) fail("an escape that is not supported");
        return letter;
    }
  }

  char32_t octal() {
    char32_t value = 0;
    for (int i = 0; i < 2 && peek() >= '0' && peek() <= '7'; ++i) value = value * 8 + take() - '0';
    return value;
  }

  char32_t hexadecimal() {
    const bool braces = accept('{');
    char32_t value = 0;
    for (int i = 0; braces ? peek() != '}' : i < 2; ++i) {
      const char32_t digit = lower_case(take());
      if (!((digit >= '0' && digit <= '9') || (digit >= 'a' && digit <= 'f')))
        fail("a bad hexadecimal number");
      value = value * 16 + (digit <= '9' ? digit - '0' : digit - 'a' + 10);
      if (value > kLast) fail("a number beyond Unicode");
    }
    if (braces) take();
    return value;
  }

  Piece bracket() {
    const bool negated = accept('^');
    Ranges ranges;
    // A bracket right at the start stands for itself.
    for (bool first = true; first || peek() != ']'; first = false) {
      if (peek() == '[' && at_ + 1 < text_.size() && text_[at_ + 1] == ':') {
        bracket_name(ranges);
        continue;
      }
      if (peek() == '\\' && at_ + 1 < text_.size())
        if (const auto known = letter_class(text_[at_ + 1])) {
          ranges.insert(ranges.end(), known->begin(), known->end());
          at_ += 2;
          continue;
        }
      const char32_t low = bracket_point();
      char32_t high = low;
      if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        high = bracket_point();
      }
      if (high < low) fail("a range that runs backwards");
      ranges.push_back({low, high});
    }
    ++at_;
    return set(std::move(ranges), negated);
  }

  char32_t bracket_point() { return accept('\\') ? escaped_point() : take(); }

  void bracket_name(Ranges& ranges) {
    at_ += 2;
    const bool negated = accept('^');
    std::u32string name;
    while (peek() != ':') name += take();
    ++at_;
    if (!accept(']')) fail("an unclosed class name");
    auto known = named_class(name);
    if (!known) fail("an unknown class name");
    if (negated) known = complement(*known);
    ranges.insert(ranges.end(), known->begin(), known->end());
  }

  std::string pattern_;
  std::vector<State>& states_;
  std::u32string text_;
  size_t at_ = 0;
  bool fold_case_ = false, dot_all_ = false, lines_ = false;
};

bool in_set(const State& state, char32_t point) {
  const bool found = std::any_of(state.ranges.begin(), state.ranges.end(), [&](auto range) {
    return range.first <= point && point <= range.last;
  });
  return found != state.negated;
}

}  // namespace

Regex::Regex(std::string_view pattern) { start_ = Parser(pattern, states_).parse(); }

void Regex::follow(uint32_t state, const Position& at, std::vector<bool>& marked,
                   std::vector<uint32_t>& out) const {
  std::vector<uint32_t> waiting{state};
  auto is_word_point = [](char32_t point) { return point != kNone && is_word(point); };
  while (!waiting.empty()) {
    const uint32_t index = waiting.back();
    waiting.pop_back();
    if (marked[index]) continue;
    marked[index] = true;
    const State& now = states_[index];
    bool passes = true;
    switch (now.kind) {
      case Kind::set:
      case Kind::done:
        out.push_back(index);
        passes = false;
        break;
      case Kind::split: waiting.push_back(now.other); break;
      case Kind::jump: break;
      case Kind::begin: passes = at.before == kNone; break;
      case Kind::end: passes = at.after == kNone; break;
      case Kind::begin_line: passes = at.before == kNone || at.before == '\n'; break;
      case Kind::end_line: passes = at.after == kNone || at.after == '\n'; break;
      case Kind::word: passes = is_word_point(at.before) != is_word_point(at.after); break;
      case Kind::not_word: passes = is_word_point(at.before) == is_word_point(at.after); break;
    }
    if (passes) waiting.push_back(now.next);
  }
}

bool Regex::full_match(std::string_view text) const {
  std::u32string points;
  while (!text.empty()) points += take_code_point(text);
  auto around = [&](size_t i) {
    return Position{i == 0 ? kNone : points[i - 1], i == points.size() ? kNone : points[i]};
  };
  std::vector<bool> marked(states_.size());
  std::vector<uint32_t> now, next;
  follow(start_, around(0), marked, now);
  for (size_t i = 0; i < points.size() && !now.empty(); ++i) {
    std::fill(marked.begin(), marked.end(), false);
    next.clear();
    for (const uint32_t index : now)
      if (states_[index].kind == Kind::set && in_set(states_[index], points[i]))
        follow(states_[index].next, around(i + 1), marked, next);
    now.swap(next);
  }
  return std::any_of(now.begin(), now.end(),
                     [&](uint32_t index) { return states_[index].kind == Kind::done; });
}

}  // namespace dais
