#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/type.h"

namespace dais {

/// All size expressions of a plan, compiled once and evaluated together when sizes are bound:
/// equal expressions share one entry, symbols are numbered.
class SizeTable {
 public:
  /// Entry of an expression, or -1 when it uses a symbol that no input defines.
  int add(const Dim& dim);
  /// Declares a symbol that binding defines; gives its number.
  int add_symbol(const std::string& name);
  int symbol(const std::string& name) const;  ///< -1 when unknown
  size_t symbols() const { return symbols_.size(); }
  size_t entries() const { return entries_.size(); }
  const std::string& symbol_name(size_t i) const { return names_[i]; }

  /// values[i] becomes entry i. A size that cannot be (negative, division by zero) is -1.
  void evaluate(std::span<const int64_t> symbols, std::vector<int64_t>& values) const;

 private:
  struct Entry {
    Dim dim;
    int symbol = -1;  ///< entry is just this symbol
    std::optional<int64_t> constant = {};
  };
  std::vector<Entry> entries_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, int> symbols_;
  std::unordered_map<std::string, int> by_text_;
};

}  // namespace dais
