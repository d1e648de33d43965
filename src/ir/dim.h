#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dais {

/// Looks up the value of a symbol; nullopt when it is not known.
using SymbolLookup = std::function<std::optional<int64_t>(const std::string&)>;

/// A size: an integer expression over named symbols, kept canonical, so that equal expressions
/// built in different ways compare equal ("N+N" is "2*N"). Immutable and cheap to copy.
class Dim {
 public:
  Dim() = default;
  Dim(int64_t value) : constant_(value) {}
  static Dim symbol(std::string name);
  /// Parses the text form, e.g. "past + 1", "floordiv(H+1, 2)"; text that is no expression becomes
  /// a symbol of that name, since files may name a dimension in any way.
  static Dim parse(std::string_view text);

  bool is_constant() const { return terms_ == nullptr; }
  /// The number, when no symbol is left.
  std::optional<int64_t> constant() const;
  bool is(int64_t value) const { return is_constant() && constant_ == value; }
  std::string text() const;
  std::optional<int64_t> eval(const SymbolLookup& lookup) const;
  void collect_symbols(std::vector<std::string>& out) const;
  Dim substitute(const std::map<std::string, Dim>& values) const;

  friend bool operator==(const Dim& a, const Dim& b);
  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  /// Quotient rounded towards minus infinity, and the remainder of the divisor's sign. A division
  /// by zero evaluates to nullopt.
  friend Dim floordiv(const Dim& a, const Dim& b);
  friend Dim mod(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);
  /// NumPy broadcasting of two sizes: the other one when one is 1.
  friend Dim broadcast(const Dim& a, const Dim& b);

 private:
  struct Atom;
  struct Term;
  using Terms = std::vector<Term>;
  static Dim make(int64_t constant, Terms terms);
  static Dim opaque(int kind, const Dim& a, const Dim& b);
  friend class DimParser;

  int64_t constant_ = 0;
  std::shared_ptr<const Terms> terms_;  ///< null for a plain number
};

Dim ceildiv(const Dim& a, const Dim& b);

/// Sizes of a tensor type.
using Dims = std::vector<Dim>;
Dim product(const Dims& dims, size_t first, size_t last);
std::string dims_text(const Dims& dims);

}  // namespace dais
