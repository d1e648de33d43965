#pragma once

#include <sys/single_threaded.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace dais::jobs {

/// Ordered map from 64-bit keys to values whose copies share structure: copying costs one pointer,
/// changing a copy duplicates only the path to the changed leaf. Dense keys are the cheap case.
///
/// A trie: every node holds a bitmap of its children and an array of them, in one piece of memory.
/// Inner nodes have up to 16, for whoever duplicates one touches all of them. Leaves hold as few
/// values as these are costly to copy. Nodes that would have one child are left out. A node that no
/// other copy refers to is changed in place, so an unshared map is as fast as a plain one.
/// Different copies may be used by different threads; one copy by one thread at a time.
/// References and pointers live until the next change of the map they came from.
template <typename V>
class PersistentMap {
 public:
  using Entry = std::pair<uint64_t, const V*>;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  /// The value of a key, or null.
  const V* find(uint64_t key) const {
    const Node* node = root_.get();
    if (!node) return nullptr;
    for (int digit; node->level > 0; node = node->children()[rank(*node, digit)].get()) {
      digit = digit_of(key, node->level);
      if (!has(*node, digit)) return nullptr;
    }
    // The digits that nodes were left out for are compared here, all at once.
    const int digit = digit_of(key, 0);
    if (prefix_of(key, 0) != node->prefix || !has(*node, digit)) return nullptr;
    return value_at(*node, rank(*node, digit));
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
    Node* node = &own(root_);
    while (node->level > 0) {
      node = &own(node->children()[rank(*node, digit_of(key, node->level))]);
    }
    return *value_at(*node, rank(*node, digit_of(key, 0)));
  }

  /// Adds a key or replaces its value.
  V& set(uint64_t key, V value) {
    Link* link = &root_;
    while (*link && (*link)->level > 0 && prefix_of(key, (*link)->level) == (*link)->prefix) {
      const int digit = digit_of(key, (*link)->level);
      if (!has(**link, digit)) add_child(*link, digit, make(0, prefix_of(key, 0), 1));
      Node& node = own(*link);
      link = &node.children()[rank(node, digit)];
    }
    if (!*link) {
      *link = make(0, prefix_of(key, 0), 1);
    } else if (prefix_of(key, (*link)->level) != (*link)->prefix) {
      link = &branch_off(*link, key);
    }
    return set_in_leaf(*link, digit_of(key, 0), std::move(value));
  }

  /// Removes a key; false when it was not there.
  bool erase(uint64_t key) {
    if (!contains(key)) return false;
    erase_below(root_, key);
    --size_;
    return true;
  }

  /// The first entry whose key is at least `key`.
  std::optional<Entry> lower_bound(uint64_t key) const {
    if (!root_) return std::nullopt;
    return from(*root_, key);
  }

  /// The last entry whose key is at most `key`.
  std::optional<Entry> upper_entry(uint64_t key) const {
    if (!root_) return std::nullopt;
    return up_to(*root_, key);
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
    if (root_) walk(*root_, visit);
  }

 private:
  struct Node;

  // One of the owners of a node. The last one destroys it.
  class Link {
   public:
    Link() = default;
    explicit Link(Node* node) : node_(node) {}
    Link(const Link& other) : node_(other.node_) {
      if (node_) node_->owners.add();
    }
    Link(Link&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
    Link& operator=(Link other) noexcept {
      std::swap(node_, other.node_);
      return *this;
    }
    ~Link() {
      if (node_ && node_->owners.drop()) destroy(node_);
    }
    explicit operator bool() const { return node_ != nullptr; }
    Node* get() const { return node_; }
    Node& operator*() const { return *node_; }
    Node* operator->() const { return node_; }

   private:
    Node* node_ = nullptr;
  };

  // Counted without atomic instructions as long as the program has one thread.
  class Owners {
   public:
    bool one() const { return count_.load(std::memory_order_acquire) == 1; }
    void add() {
      if (__libc_single_threaded) {
        count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      } else {
        count_.fetch_add(1, std::memory_order_relaxed);
      }
    }
    // True when that was the last.
    bool drop() {
      if (one()) return true;
      if (__libc_single_threaded) {
        count_.store(count_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
        return false;
      }
      return count_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    }

   private:
    std::atomic<uint32_t> count_{1};
  };

  // Its children or values follow it in memory.
  struct Node {
    Owners owners;
    uint16_t capacity;  // of what follows
    uint8_t level;      // 0: a leaf
    uint64_t bits = 0;  // which digits there are
    uint64_t prefix;    // what keys below have in common, up to the digit of this level

    Link* children() { return reinterpret_cast<Link*>(this + 1); }
    const Link* children() const { return reinterpret_cast<const Link*>(this + 1); }
    V* values() { return reinterpret_cast<V*>(this + 1); }
    const V* values() const { return reinterpret_cast<const V*>(this + 1); }
  };

  static constexpr int inner_bits = 4;
  static constexpr bool is_set = std::is_empty_v<V>;  // whose values take no memory
  static constexpr int leaf_bits() {
    if (is_set) return 6;
    if (!std::is_trivially_copyable_v<V>) return 1;
    return sizeof(V) <= 16 ? 4 : 2;
  }
  // What all entries of a set have for their value.
  static V* no_value() {
    static V value;
    return &value;
  }
  static V* value_at(Node& node, int place) {
    if constexpr (is_set) return no_value();
    return node.values() + place;
  }
  static const V* value_at(const Node& node, int place) {
    if constexpr (is_set) return no_value();
    return node.values() + place;
  }

  // Where the digit of a level stands in a key.
  static int shift_of(int level) { return level == 0 ? 0 : leaf_bits() + inner_bits * (level - 1); }
  static int digit_of(uint64_t key, int level) {
    const int mask = (1 << (level == 0 ? leaf_bits() : inner_bits)) - 1;
    return static_cast<int>(key >> shift_of(level)) & mask;
  }
  static uint64_t prefix_of(uint64_t key, int level) {
    const int shift = shift_of(level + 1);
    return shift >= 64 ? 0 : key >> shift << shift;
  }
  // The level of the highest digit in which keys differ.
  static int level_of(uint64_t difference) {
    const int bit = 63 - std::countl_zero(difference);
    return bit < leaf_bits() ? 0 : 1 + (bit - leaf_bits()) / inner_bits;
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

  // ---- Nodes

  static Link make(int level, uint64_t prefix, int count) {
    static_assert(sizeof(Node) % alignof(V) == 0);
    const bool leaf = level == 0;
    const int most = 1 << (leaf ? leaf_bits() : inner_bits);
    const int capacity =
        leaf && is_set ? most : static_cast<int>(std::bit_ceil(static_cast<unsigned>(count)));
    const size_t each = !leaf ? sizeof(Link) : is_set ? 0 : sizeof(V);
    void* memory = ::operator new(sizeof(Node) + static_cast<size_t>(capacity) * each);
    return Link(new (memory) Node{
        {}, static_cast<uint16_t>(capacity), static_cast<uint8_t>(level), 0, prefix});
  }

  static void destroy(Node* node) {
    const int count = ones(node->bits);
    if (node->level > 0) {
      std::destroy_n(node->children(), count);
    } else if constexpr (!is_set) {
      std::destroy_n(node->values(), count);
    }
    node->~Node();
    ::operator delete(node);
  }

  // Makes the node of a link this map's alone, with room for so many entries.
  static Node& own(Link& link, int room = 0) {
    Node& old = *link;
    const bool alone = old.owners.one();
    if (alone && old.capacity >= room) return old;
    const int count = ones(old.bits);
    Link fresh = make(old.level, old.prefix, std::max(room, count));
    if (old.level > 0) {
      transfer(old.children(), count, fresh->children(), alone);
    } else if constexpr (!is_set) {
      transfer(old.values(), count, fresh->values(), alone);
    }
    fresh->bits = old.bits;
    link = std::move(fresh);
    return *link;
  }

  template <typename T>
  static void transfer(T* from, int count, T* to, bool may_move) {
    if (may_move) {
      std::uninitialized_move_n(from, count, to);
    } else {
      std::uninitialized_copy_n(from, count, to);
    }
  }

  template <typename T>
  static void insert(T* all, int count, int place, T value) {
    if (place == count) {
      new (all + count) T(std::move(value));
      return;
    }
    new (all + count) T(std::move(all[count - 1]));
    std::move_backward(all + place, all + count - 1, all + count);
    all[place] = std::move(value);
  }

  template <typename T>
  static void remove(T* all, int count, int place) {
    std::move(all + place + 1, all + count, all + place);
    std::destroy_at(all + count - 1);
  }

  static void add_child(Link& link, int digit, Link child) {
    const int count = ones(link->bits);
    Node& node = own(link, count + 1);
    insert(node.children(), count, rank(node, digit), std::move(child));
    node.bits |= uint64_t{1} << digit;
  }

  // Puts a node above one that the key does not belong below, and a leaf for the key beside it.
  static Link& branch_off(Link& link, uint64_t key) {
    const uint64_t other = link->prefix;
    const int level = level_of(key ^ other);
    Link above = make(level, prefix_of(key, level), 2);
    add_child(above, digit_of(other, level), std::move(link));
    add_child(above, digit_of(key, level), make(0, prefix_of(key, 0), 1));
    link = std::move(above);
    return link->children()[rank(*link, digit_of(key, level))];
  }

  V& set_in_leaf(Link& link, int digit, V value) {
    const int place = rank(*link, digit);
    if (has(*link, digit)) {
      V& known = *value_at(own(link), place);
      known = std::move(value);
      return known;
    }
    const int count = ones(link->bits);
    Node& leaf = own(link, count + 1);
    if constexpr (!is_set) insert(leaf.values(), count, place, std::move(value));
    leaf.bits |= uint64_t{1} << digit;
    ++size_;
    return *value_at(leaf, place);
  }

  static bool single(const Node& node) { return (node.bits & (node.bits - 1)) == 0; }

  static void erase_below(Link& link, uint64_t key) {
    if (link->level == 0 && single(*link)) {
      link = Link();
      return;
    }
    Node& node = own(link);
    const int digit = digit_of(key, node.level);
    const int place = rank(node, digit);
    if (node.level == 0) {
      if constexpr (!is_set) remove(node.values(), ones(node.bits), place);
      node.bits &= ~(uint64_t{1} << digit);
      return;
    }
    erase_below(node.children()[place], key);
    if (node.children()[place]) return;
    remove(node.children(), ones(node.bits), place);
    node.bits &= ~(uint64_t{1} << digit);
    if (!single(node)) return;
    Link only = std::move(node.children()[0]);
    link = std::move(only);
  }

  // ---- Search

  static Entry entry_at(const Node& leaf, int digit) {
    return {leaf.prefix | static_cast<uint64_t>(digit), value_at(leaf, rank(leaf, digit))};
  }
  static int lowest(uint64_t bits) { return std::countr_zero(bits); }
  static int highest(uint64_t bits) { return 63 - std::countl_zero(bits); }

  static Entry first_of(const Node* node) {
    while (node->level > 0) node = node->children()[0].get();
    return entry_at(*node, lowest(node->bits));
  }
  static Entry last_of(const Node* node) {
    while (node->level > 0) node = node->children()[ones(node->bits) - 1].get();
    return entry_at(*node, highest(node->bits));
  }

  static std::optional<Entry> from(const Node& node, uint64_t key) {
    const uint64_t prefix = prefix_of(key, node.level);
    if (prefix > node.prefix) return std::nullopt;
    if (prefix < node.prefix) return first_of(&node);
    const int digit = digit_of(key, node.level);
    if (node.level > 0 && has(node, digit)) {
      const auto below = from(*node.children()[rank(node, digit)], key);
      if (below) return below;
    }
    uint64_t bits = node.bits & ~uint64_t{0} << digit;
    if (node.level > 0) bits &= ~(uint64_t{1} << digit);
    if (bits == 0) return std::nullopt;
    if (node.level == 0) return entry_at(node, lowest(bits));
    return first_of(node.children()[rank(node, lowest(bits))].get());
  }

  static std::optional<Entry> up_to(const Node& node, uint64_t key) {
    const uint64_t prefix = prefix_of(key, node.level);
    if (prefix < node.prefix) return std::nullopt;
    if (prefix > node.prefix) return last_of(&node);
    const int digit = digit_of(key, node.level);
    if (node.level > 0 && has(node, digit)) {
      const auto below = up_to(*node.children()[rank(node, digit)], key);
      if (below) return below;
    }
    uint64_t bits = node.bits & ~uint64_t{0} >> (63 - digit);
    if (node.level > 0) bits &= ~(uint64_t{1} << digit);
    if (bits == 0) return std::nullopt;
    if (node.level == 0) return entry_at(node, highest(bits));
    return last_of(node.children()[rank(node, highest(bits))].get());
  }

  template <typename Visit>
  static void walk(const Node& node, Visit& visit) {
    int place = 0;
    for (uint64_t bits = node.bits; bits != 0; bits &= bits - 1, ++place) {
      if (node.level > 0) {
        walk(*node.children()[place], visit);
      } else {
        visit(node.prefix | static_cast<uint64_t>(lowest(bits)), *value_at(node, place));
      }
    }
  }

  Link root_;
  size_t size_ = 0;
};

}  // namespace dais::jobs
