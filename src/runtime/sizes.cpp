#include "runtime/sizes.h"

#include <algorithm>

namespace dais {

int SizeTable::add_symbol(const std::string& name) {
  auto [place, added] = symbols_.try_emplace(name, static_cast<int>(names_.size()));
  if (added) names_.push_back(name);
  return place->second;
}

int SizeTable::symbol(const std::string& name) const {
  auto found = symbols_.find(name);
  return found == symbols_.end() ? -1 : found->second;
}

int SizeTable::add(const Dim& dim) {
  std::vector<std::string> used;
  dim.collect_symbols(used);
  for (const auto& name : used)
    if (symbol(name) < 0) return -1;
  const std::string text = dim.text();
  auto [place, added] = by_text_.try_emplace(text, static_cast<int>(entries_.size()));
  if (added) {
    const bool plain = used.size() == 1 && text == used[0];
    entries_.push_back({dim, plain ? symbol(used[0]) : -1, dim.constant()});
  }
  return place->second;
}

void SizeTable::evaluate(std::span<const int64_t> symbols, std::vector<int64_t>& values) const {
  values.resize(entries_.size());
  const SymbolLookup lookup = [&](const std::string& name) -> std::optional<int64_t> {
    return symbols[static_cast<size_t>(symbols_.at(name))];
  };
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    values[i] = entry.symbol >= 0 ? symbols[static_cast<size_t>(entry.symbol)]
                : entry.constant  ? *entry.constant
                                  : std::max<int64_t>(entry.dim.eval(lookup).value_or(-1), -1);
  }
}

}  // namespace dais
