#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"

namespace dais::jobs {

/// Ordered map from 64-bit keys to values whose copies share structure: copying costs one pointer,
/// changing a copy duplicates only the path to the changed leaf. Dense keys are the cheap case.
///
/// A trie: every node holds a bitmap of its children and a compact array of them, up to 64. Leaves
/// of values that are costly to copy hold up to 8, so that a change of a shared copy duplicates few
/// of them. A node that no other copy refers to is changed in place, so an unshared map is as fast
/// as a plain one.
/// Different copies may be used by different threads; one copy by one thread at a time.
/// References and pointers live until the next change of the map they came from.
template <typename V>
class PersistentMap {
  // A set needs no memory for its values.
  struct NoValues {
    V& operator[](int) { return value; }
    const V& operator[](int) const { return value; }
    [[no_unique_address]] V value;
  };
  static constexpr bool is_set = std::is_empty_v<V>;
  struct Node {
    uint64_t bits = 0;
    std::vector<std::shared_ptr<Node>> children;  // inner nodes only
    // Leaves only.
    [[no_unique_address]] std::conditional_t<is_set, NoValues, std::vector<V>> values;
  };
  static constexpr int leaf_digit_bits = std::is_trivially_copyable_v<V> ? 6 : 3;
  using Link = std::shared_ptr<Node>;

 public:
  using Entry = std::pair<uint64_t, const V*>;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  /// The value of a key, or null.
  const V* find(uint64_t key) const {
    if (!root_ || !reaches(key)) return nullptr;
    const Node* node = root_.get();
    for (int level = height_; level > 0; --level) {
      const int digit = digit_of(key, level);
      if (!has(*node, digit)) return nullptr;
      node = node->children[rank(*node, digit)].get();
    }
    const int digit = digit_of(key, 0);
    return has(*node, digit) ? &node->values[rank(*node, digit)] : nullptr;
  }

  bool contains(uint64_t key) const { return find(key) != nullptr; }

  const V& at(uint64_t key) const {
    const V* value = find(key);
    DAIS_CHECK(value != nullptr);
    return *value;
  }

  /// A value that only this copy owns, ready to be changed. The key must exist.
  V& edit(uint64_t key) {
    DAIS_CHECK(contains(key));
    Node* node = own(root_);
    for (int level = height_; level > 0; --level) {
      node = own(node->children[rank(*node, digit_of(key, level))]);
    }
    return node->values[rank(*node, digit_of(key, 0))];
  }

  /// Adds a key or replaces its value.
  V& set(uint64_t key, V value) {
    if (!root_) root_ = std::make_shared<Node>();
    while (!reaches(key)) grow();
    Node* node = own(root_);
    for (int level = height_; level > 0; --level) {
      const int digit = digit_of(key, level);
      const int place = rank(*node, digit);
      if (!has(*node, digit)) {
        node->children.insert(node->children.begin() + place, std::make_shared<Node>());
        node->bits |= uint64_t{1} << digit;
      }
      node = own(node->children[place]);
    }
    return set_in_leaf(*node, digit_of(key, 0), std::move(value));
  }

  /// Removes a key; false when it was not there.
  bool erase(uint64_t key) {
    if (!contains(key)) return false;
    erase_below(root_, key, height_);
    if (--size_ == 0) *this = PersistentMap();
    return true;
  }

  /// The first entry whose key is at least `key`.
  std::optional<Entry> lower_bound(uint64_t key) const {
    if (!root_ || !reaches(key)) return std::nullopt;
    return search<true>(*root_, height_, 0, key, true);
  }

  /// The last entry whose key is at most `key`.
  std::optional<Entry> upper_entry(uint64_t key) const {
    if (!root_) return std::nullopt;
    return search<false>(*root_, height_, 0, key, reaches(key));
  }

  std::optional<Entry> first() const { return lower_bound(0); }
  std::optional<Entry> last() const { return upper_entry(~uint64_t{0}); }

  /// Entries after or before a key.
  std::optional<Entry> after(uint64_t key) const {
    if (key == ~uint64_t{0}) return std::nullopt;
    return lower_bound(key + 1);
  }
  std::optional<Entry> before(uint64_t key) const {
    if (key == 0) return std::nullopt;
    return upper_entry(key - 1);
  }

  /// Calls visit(key, value) in order.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    if (root_) walk(*root_, height_, 0, visit);
  }

 private:
  // Where the digit of a level stands in a key.
  static int shift_of(int level) { return level == 0 ? 0 : leaf_digit_bits + 6 * (level - 1); }
  static int digit_of(uint64_t key, int level) {
    const int mask = level == 0 ? (1 << leaf_digit_bits) - 1 : 63;
    return static_cast<int>(key >> shift_of(level)) & mask;
  }
  static bool has(const Node& node, int digit) { return (node.bits >> digit) & 1; }
  static int rank(const Node& node, int digit) {
    return ones(node.bits & ((uint64_t{1} << digit) - 1));
  }
  // Counted in line: without a popcount instruction the library's function is called instead.
  static int ones(uint64_t bits) {
    bits -= (bits >> 1) & 0x5555555555555555;
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333);
    bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return static_cast<int>((bits * 0x0101010101010101) >> 56);
  }
  bool reaches(uint64_t key) const {
    const int bits = shift_of(height_ + 1);
    return bits >= 64 || (key >> bits) == 0;
  }

  static Node* own(Link& link) {
    if (link.use_count() != 1) link = std::make_shared<Node>(*link);
    return link.get();
  }

  void grow() {
    auto above = std::make_shared<Node>();
    if (root_->bits != 0) {
      above->bits = 1;
      above->children.push_back(std::move(root_));
    }
    root_ = std::move(above);
    ++height_;
  }

  V& set_in_leaf(Node& leaf, int digit, V value) {
    const int place = rank(leaf, digit);
    if (has(leaf, digit)) {
      leaf.values[place] = std::move(value);
    } else {
      if constexpr (!is_set) {
        leaf.values.insert(leaf.values.begin() + place, std::move(value));
      }
      leaf.bits |= uint64_t{1} << digit;
      ++size_;
    }
    return leaf.values[place];
  }

  void erase_below(Link& link, uint64_t key, int level) {
    Node* node = own(link);
    const int digit = digit_of(key, level);
    const int place = rank(*node, digit);
    if (level > 0) {
      erase_below(node->children[place], key, level - 1);
      if (node->children[place]->bits != 0) return;
      node->children.erase(node->children.begin() + place);
    } else if constexpr (!is_set) {
      node->values.erase(node->values.begin() + place);
    }
    node->bits &= ~(uint64_t{1} << digit);
  }

  // Forward: the first key >= `key`; backward: the last key <= `key`. While `tight`, the digits so
  // far equal those of `key`; once a digit differs, every key below qualifies.
  template <bool forward>
  static std::optional<Entry> search(const Node& node, int level, uint64_t prefix, uint64_t key,
                                     bool tight) {
    const int bound = tight ? digit_of(key, level) : (forward ? 0 : 63);
    uint64_t bits = node.bits;
    bits &= forward ? ~uint64_t{0} << bound : ~uint64_t{0} >> (63 - bound);
    while (bits != 0) {
      const int digit = forward ? std::countr_zero(bits) : 63 - std::countl_zero(bits);
      const uint64_t here = prefix | (static_cast<uint64_t>(digit) << shift_of(level));
      const int place = rank(node, digit);
      if (level == 0) return Entry{here, &node.values[place]};
      const bool still_tight = tight && digit == bound;
      auto found = search<forward>(*node.children[place], level - 1, here, key, still_tight);
      if (found) return found;
      bits &= ~(uint64_t{1} << digit);
    }
    return std::nullopt;
  }

  template <typename Visit>
  static void walk(const Node& node, int level, uint64_t prefix, Visit& visit) {
    int place = 0;
    for (uint64_t bits = node.bits; bits != 0; bits &= bits - 1, ++place) {
      const auto digit = static_cast<uint64_t>(std::countr_zero(bits));
      const uint64_t here = prefix | (digit << shift_of(level));
      if (level == 0) {
        visit(here, node.values[place]);
      } else {
        walk(*node.children[place], level - 1, here, visit);
      }
    }
  }

  Link root_;
  int height_ = 0;
  size_t size_ = 0;
};

}  // namespace dais::jobs
