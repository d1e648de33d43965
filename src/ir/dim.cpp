#include "ir/dim.h"

#include <algorithm>

#include "base/error.h"

namespace dais {
namespace {

enum Kind { kSymbol, kFloorDiv, kMod, kMin, kMax, kBroadcast };
constexpr const char* kNames[] = {"", "floordiv", "mod", "min", "max", "broadcast"};

std::optional<int64_t> checked_add(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}

std::optional<int64_t> checked_mul(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

[[noreturn]] void overflowed() {
  throw Error(Code::invalid_argument, "the size of a dimension overflows 64 bits");
}

// Products of sums, and choices between choices, can double with every operation: a file of a few
// hundred bytes could ask for any amount of memory. Real models stay below a thousand characters.
constexpr size_t kLongestText = 10'000;
constexpr size_t kMostTerms = 10'000;

void check_extent(size_t extent, size_t limit) {
  if (extent > limit)
    throw Error(Code::invalid_argument,
                "the size of a dimension is an expression of more than " +
                    std::to_string(kLongestText) + " characters",
                "", "Give the model's inputs fixed sizes");
}

std::optional<int64_t> apply(int kind, int64_t a, int64_t b) {
  switch (kind) {
    case kFloorDiv:
      if (b == 0 || (a == INT64_MIN && b == -1)) return std::nullopt;
      return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
    case kMod: {
      if (b == 0 || b == -1) return b == 0 ? std::nullopt : std::optional<int64_t>(0);
      const int64_t rest = a % b;
      return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
    case kMin: return std::min(a, b);
    case kMax: return std::max(a, b);
    case kBroadcast: return a == 1 ? b : a;
    default: return std::nullopt;
  }
}

}  // namespace

/// A symbol, or an operation that polynomials cannot express.
struct Dim::Atom {
  int kind;
  std::string text;  ///< canonical; the identity of the atom
  Dim a, b;
};

/// coefficient × product of atoms (sorted by text).
struct Dim::Term {
  int64_t coefficient;
  std::vector<std::shared_ptr<const Atom>> atoms;

  /// Length of the text, without the coefficient.
  size_t extent() const {
    size_t out = 0;
    for (const auto& atom : atoms) out += atom->text.size() + 1;
    return out;
  }
  std::string key() const {
    std::string out;
    for (const auto& atom : atoms) out += (out.empty() ? "" : "*") + atom->text;
    return out;
  }
};

Dim Dim::make(int64_t constant, Terms terms) {
  std::sort(terms.begin(), terms.end(),
            [](const Term& x, const Term& y) { return x.key() < y.key(); });
  Terms merged;
  for (auto& term : terms) {
    if (!merged.empty() && merged.back().key() == term.key()) {
      auto sum = checked_add(merged.back().coefficient, term.coefficient);
      if (!sum) overflowed();
      merged.back().coefficient = *sum;
    } else {
      merged.push_back(std::move(term));
    }
  }
  std::erase_if(merged, [](const Term& term) { return term.coefficient == 0; });
  size_t extent = 0;
  for (const Term& term : merged) extent += term.extent();
  check_extent(extent, kLongestText);
  Dim out(constant);
  if (!merged.empty()) out.terms_ = std::make_shared<const Terms>(std::move(merged));
  return out;
}

Dim Dim::symbol(std::string name) {
  auto atom = std::make_shared<Atom>();
  atom->kind = kSymbol;
  atom->text = std::move(name);
  return make(0, {{1, {std::move(atom)}}});
}

Dim Dim::opaque(int kind, const Dim& a, const Dim& b) {
  auto atom = std::make_shared<Atom>();
  atom->kind = kind;
  atom->text = std::string(kNames[kind]) + "(" + a.text() + ", " + b.text() + ")";
  check_extent(atom->text.size(), kLongestText);
  atom->a = a;
  atom->b = b;
  return make(0, {{1, {std::move(atom)}}});
}

std::optional<int64_t> Dim::constant() const {
  if (!is_constant()) return std::nullopt;
  return constant_;
}

std::string Dim::text() const {
  if (is_constant()) return std::to_string(constant_);
  std::string out;
  for (const auto& term : *terms_) {
    const bool negative = term.coefficient < 0;
    if (!out.empty()) out += negative ? " - " : " + ";
    if (out.empty() && negative) out += "-";
    const uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(term.coefficient)
                                        : static_cast<uint64_t>(term.coefficient);
    if (magnitude != 1) out += std::to_string(magnitude) + "*";
    out += term.key();
  }
  if (constant_ > 0) out += " + " + std::to_string(constant_);
  if (constant_ < 0) out += " - " + std::to_string(0 - static_cast<uint64_t>(constant_));
  return out;
}

std::optional<int64_t> Dim::eval(const SymbolLookup& lookup) const {
  if (is_constant()) return constant_;
  std::optional<int64_t> sum = constant_;
  for (const auto& term : *terms_) {
    std::optional<int64_t> value = term.coefficient;
    for (const auto& atom : term.atoms) {
      std::optional<int64_t> factor;
      if (atom->kind == kSymbol) {
        factor = lookup(atom->text);
      } else {
        auto a = atom->a.eval(lookup), b = atom->b.eval(lookup);
        if (a && b) factor = apply(atom->kind, *a, *b);
      }
      if (!factor || !value) return std::nullopt;
      value = checked_mul(*value, *factor);
    }
    if (!value || !sum) return std::nullopt;
    sum = checked_add(*sum, *value);
  }
  return sum;
}

void Dim::collect_symbols(std::vector<std::string>& out) const {
  if (is_constant()) return;
  for (const auto& term : *terms_)
    for (const auto& atom : term.atoms) {
      if (atom->kind == kSymbol) {
        if (std::find(out.begin(), out.end(), atom->text) == out.end()) out.push_back(atom->text);
      } else {
        atom->a.collect_symbols(out);
        atom->b.collect_symbols(out);
      }
    }
}

Dim Dim::substitute(const std::map<std::string, Dim>& values) const {
  if (is_constant()) return *this;
  Dim sum = constant_;
  for (const auto& term : *terms_) {
    Dim value = term.coefficient;
    for (const auto& atom : term.atoms) {
      if (atom->kind == kSymbol) {
        auto found = values.find(atom->text);
        value = value * (found == values.end() ? symbol(atom->text) : found->second);
        continue;
      }
      const Dim a = atom->a.substitute(values), b = atom->b.substitute(values);
      switch (atom->kind) {
        case kFloorDiv: value = value * floordiv(a, b); break;
        case kMod: value = value * mod(a, b); break;
        case kMin: value = value * min(a, b); break;
        case kMax: value = value * max(a, b); break;
        default: value = value * broadcast(a, b); break;
      }
    }
    sum = sum + value;
  }
  return sum;
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.constant_ != b.constant_ || a.is_constant() != b.is_constant()) return false;
  if (a.terms_ == b.terms_) return true;
  return std::equal(a.terms_->begin(), a.terms_->end(), b.terms_->begin(), b.terms_->end(),
                    [](const Dim::Term& x, const Dim::Term& y) {
                      return x.coefficient == y.coefficient && x.key() == y.key();
                    });
}

Dim operator+(const Dim& a, const Dim& b) {
  auto constant = checked_add(a.constant_, b.constant_);
  if (!constant) overflowed();
  if (a.is_constant() && b.is_constant()) return *constant;
  Dim::Terms terms;
  if (a.terms_) terms = *a.terms_;
  if (b.terms_) terms.insert(terms.end(), b.terms_->begin(), b.terms_->end());
  return Dim::make(*constant, std::move(terms));
}

Dim operator-(const Dim& a, const Dim& b) { return a + b * Dim(-1); }

Dim operator*(const Dim& a, const Dim& b) {
  auto constant = checked_mul(a.constant_, b.constant_);
  if (!constant) overflowed();
  if (a.is_constant() && b.is_constant()) return *constant;
  const auto count = [](const Dim& dim) { return dim.terms_ ? dim.terms_->size() + 1 : 1; };
  check_extent(count(a) * count(b), kMostTerms);
  Dim::Terms terms;
  auto add = [&](int64_t x, int64_t y, std::vector<std::shared_ptr<const Dim::Atom>> atoms) {
    auto coefficient = checked_mul(x, y);
    if (!coefficient) overflowed();
    std::sort(atoms.begin(), atoms.end(),
              [](const auto& p, const auto& q) { return p->text < q->text; });
    terms.push_back({*coefficient, std::move(atoms)});
  };
  if (a.terms_)
    for (const auto& term : *a.terms_) add(term.coefficient, b.constant_, term.atoms);
  if (b.terms_)
    for (const auto& term : *b.terms_) add(term.coefficient, a.constant_, term.atoms);
  if (a.terms_ && b.terms_)
    for (const auto& x : *a.terms_)
      for (const auto& y : *b.terms_) {
        auto atoms = x.atoms;
        atoms.insert(atoms.end(), y.atoms.begin(), y.atoms.end());
        add(x.coefficient, y.coefficient, std::move(atoms));
      }
  return Dim::make(*constant, std::move(terms));
}

Dim floordiv(const Dim& a, const Dim& b) {
  if (b.is(1)) return a;
  if (a.is_constant() && b.is_constant())
    if (auto value = apply(kFloorDiv, a.constant_, b.constant_)) return *value;
  if (a == b) return 1;
  // (c*x + d) / b splits exactly when b divides every coefficient of the symbolic part.
  if (b.is_constant() && b.constant_ > 0 && a.terms_) {
    bool exact = std::all_of(a.terms_->begin(), a.terms_->end(), [&](const Dim::Term& term) {
      return term.coefficient % b.constant_ == 0;
    });
    if (exact) {
      Dim::Terms terms = *a.terms_;
      for (auto& term : terms) term.coefficient /= b.constant_;
      return Dim::make(*apply(kFloorDiv, a.constant_, b.constant_), std::move(terms));
    }
  }
  // x*y / x with a single term on both sides: cancel shared factors.
  if (a.terms_ && b.terms_ && a.terms_->size() == 1 && b.terms_->size() == 1 && a.constant_ == 0 &&
      b.constant_ == 0) {
    Dim::Term top = a.terms_->front(), bottom = b.terms_->front();
    for (auto it = bottom.atoms.begin(); it != bottom.atoms.end();) {
      auto same = std::find_if(top.atoms.begin(), top.atoms.end(),
                               [&](const auto& atom) { return atom->text == (*it)->text; });
      if (same == top.atoms.end()) {
        ++it;
        continue;
      }
      top.atoms.erase(same);
      it = bottom.atoms.erase(it);
    }
    if (bottom.atoms.empty()) {
      const Dim rest = top.atoms.empty() ? Dim(top.coefficient) : Dim::make(0, {top});
      return floordiv(rest, Dim(bottom.coefficient));
    }
  }
  return Dim::opaque(kFloorDiv, a, b);
}

Dim mod(const Dim& a, const Dim& b) {
  if (b.is(1)) return 0;
  if (a.is_constant() && b.is_constant())
    if (auto value = apply(kMod, a.constant_, b.constant_)) return *value;
  return Dim::opaque(kMod, a, b);
}

Dim min(const Dim& a, const Dim& b) {
  if (a == b) return a;
  const Dim difference = a - b;
  if (difference.is_constant()) return difference.constant_ < 0 ? a : b;
  return Dim::opaque(kMin, a, b);
}

Dim max(const Dim& a, const Dim& b) {
  if (a == b) return a;
  const Dim difference = a - b;
  if (difference.is_constant()) return difference.constant_ > 0 ? a : b;
  return Dim::opaque(kMax, a, b);
}

Dim broadcast(const Dim& a, const Dim& b) {
  if (a == b || b.is(1)) return a;
  if (a.is(1)) return b;
  if (a.is_constant()) return a;
  if (b.is_constant()) return b;
  return Dim::opaque(kBroadcast, a, b);
}

Dim ceildiv(const Dim& a, const Dim& b) { return floordiv(a + b - 1, b); }

Dim product(const Dims& dims, size_t first, size_t last) {
  Dim out = 1;
  for (size_t axis = first; axis < last; ++axis) out = out * dims[axis];
  return out;
}

std::string dims_text(const Dims& dims) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i) out += (i ? "," : "") + dims[i].text();
  return out + "]";
}

/// Recursive descent over: sum := product (± product)*, product := atom (* atom)*,
/// atom := number | name | name(sum, sum) | (sum) | -atom.
class DimParser {
 public:
  explicit DimParser(std::string_view text) : text_(text) {}

  std::optional<Dim> parse() {
    auto out = sum();
    skip();
    if (!out || at_ != text_.size()) return std::nullopt;
    return out;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::optional<Dim> sum() {
    auto left = term();
    while (left) {
      if (take('+')) {
        auto right = term();
        if (!right) return std::nullopt;
        left = *left + *right;
      } else if (take('-')) {
        auto right = term();
        if (!right) return std::nullopt;
        left = *left - *right;
      } else {
        break;
      }
    }
    return left;
  }
  std::optional<Dim> term() {
    auto left = atom();
    while (left && take('*')) {
      auto right = atom();
      if (!right) return std::nullopt;
      left = *left * *right;
    }
    return left;
  }
  std::optional<Dim> atom() {
    if (depth_ == 64) return std::nullopt;
    ++depth_;
    auto out = shallow_atom();
    --depth_;
    return out;
  }
  std::optional<Dim> shallow_atom() {
    skip();
    if (at_ >= text_.size()) return std::nullopt;
    const char c = text_[at_];
    if (take('(')) {
      auto inner = sum();
      return inner && take(')') ? inner : std::nullopt;
    }
    if (take('-')) {
      auto inner = atom();
      if (!inner) return std::nullopt;
      return *inner * Dim(-1);
    }
    if (std::isdigit(static_cast<unsigned char>(c))) return number();
    return name();
  }
  std::optional<Dim> number() {
    int64_t value = 0;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])))
      if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
          __builtin_add_overflow(value, int64_t{text_[at_++] - '0'}, &value))
        return std::nullopt;
    return Dim(value);
  }
  std::optional<Dim> name() {
    const size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
            std::string_view("_?.").find(text_[at_]) != std::string_view::npos))
      ++at_;
    if (at_ == begin) return std::nullopt;
    const std::string word(text_.substr(begin, at_ - begin));
    if (!take('(')) return Dim::symbol(word);
    auto a = sum();
    if (!a || !take(',')) return std::nullopt;
    auto b = sum();
    if (!b || !take(')')) return std::nullopt;
    if (word == "floordiv") return floordiv(*a, *b);
    if (word == "mod") return mod(*a, *b);
    if (word == "min") return min(*a, *b);
    if (word == "max") return max(*a, *b);
    if (word == "broadcast") return broadcast(*a, *b);
    return std::nullopt;
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

Dim Dim::parse(std::string_view text) {
  auto parsed = DimParser(text).parse();
  return parsed ? *parsed : symbol(std::string(text));
}

}  // namespace dais
