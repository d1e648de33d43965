#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"

namespace dais::jobs {

/// Small ordered index from 64-bit keys to 64-bit values whose copies share one array: scanning it
/// costs what scanning an array costs; a change copies the array only when another copy shares it.
class FlatIndex {
 public:
  struct Entry {
    uint64_t key;
    uint64_t value;
  };

  size_t size() const { return entries_ ? entries_->size() : 0; }
  bool empty() const { return size() == 0; }
  const Entry* begin() const { return entries_ ? entries_->data() : nullptr; }
  const Entry* end() const { return begin() + size(); }
  /// The first entry whose key is at least `key`.
  const Entry* lower_bound(uint64_t key) const {
    return std::lower_bound(begin(), end(), key,
                            [](const Entry& entry, uint64_t bound) { return entry.key < bound; });
  }

  /// Adds a key that is not there yet.
  void add(uint64_t key, uint64_t value) {
    const size_t place = static_cast<size_t>(lower_bound(key) - begin());
    DAIS_CHECK(place == size() || begin()[place].key != key);
    auto& entries = own();
    entries.insert(entries.begin() + static_cast<ptrdiff_t>(place), Entry{key, value});
  }

  /// Removes a key that is there.
  void remove(uint64_t key) {
    const size_t place = static_cast<size_t>(lower_bound(key) - begin());
    DAIS_CHECK(place < size() && begin()[place].key == key);
    auto& entries = own();
    entries.erase(entries.begin() + static_cast<ptrdiff_t>(place));
  }

 private:
  std::vector<Entry>& own() {
    if (!entries_) {
      entries_ = std::make_shared<std::vector<Entry>>();
    } else if (entries_.use_count() != 1) {
      entries_ = std::make_shared<std::vector<Entry>>(*entries_);
    }
    return *entries_;
  }

  std::shared_ptr<std::vector<Entry>> entries_;
};

}  // namespace dais::jobs
