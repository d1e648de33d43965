#include "ops/pad/mapped_plan_cpu.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/threads.h"

namespace dais {
namespace {

constexpr int64_t kParallelBytes = 64 * 1024;

bool is_whole(const std::vector<int64_t>& map, int64_t size) {
  if (std::ssize(map) != size) return false;
  for (size_t i = 0; i < map.size(); ++i)
    if (map[i] != static_cast<int64_t>(i)) return false;
  return true;
}

}  // namespace

MappedPlan::MappedPlan(const Shape& from, IndexMaps maps, size_t element_size)
    : size_(element_size) {
  const Shape strides = strides_of(from);
  while (!maps.empty() && is_whole(maps.back(), from[maps.size() - 1])) {
    block_ *= from[maps.size() - 1];
    maps.pop_back();
  }
  if (maps.empty()) {
    row_ = block_;
    pieces_ = {{0, 1}};
    return;
  }
  cut_row(maps.back());
  row_ = std::ssize(maps.back()) * block_;
  maps.pop_back();
  for (size_t axis = 0; axis < maps.size(); ++axis) {
    rows_ *= std::ssize(maps[axis]);
    for (int64_t& index : maps[axis])
      if (index >= 0) index *= strides[axis];
  }
  outer_ = std::move(maps);
}

void MappedPlan::cut_row(const std::vector<int64_t>& map) {
  for (const int64_t index : map) {
    const bool goes_on =
        !pieces_.empty() &&
        (pieces_.back().from < 0 ? index < 0 : index == pieces_.back().from + pieces_.back().count);
    if (goes_on)
      ++pieces_.back().count;
    else
      pieces_.push_back({index, 1});
  }
  constexpr int64_t kWorthARun = 64;
  const int64_t bytes = std::ssize(map) * block_ * static_cast<int64_t>(size_);
  if (block_ > 1 || bytes >= kWorthARun * std::ssize(pieces_)) return;
  pieces_.clear();
  index_ = map;
}

template <typename T>
void MappedPlan::run_row(const T* from, T fill, T* to) const {
  if (!index_.empty()) {
    for (size_t i = 0; i < index_.size(); ++i) to[i] = index_[i] < 0 ? fill : from[index_[i]];
    return;
  }
  for (const Piece& piece : pieces_) {
    const int64_t count = piece.count * block_;
    if (piece.from < 0)
      std::fill_n(to, count, fill);
    else
      std::memcpy(to, from + piece.from * block_, static_cast<size_t>(count) * sizeof(T));
    to += count;
  }
}

template <typename T>
void MappedPlan::run_as(const T* from, T fill, T* to) const {
  const int64_t bytes = row_ * static_cast<int64_t>(sizeof(T));
  const int64_t grain = std::max<int64_t>(1, kParallelBytes / std::max<int64_t>(1, bytes));
  parallel_for(rows_, grain, [&](int64_t first, int64_t last) {
    int64_t before = -2;
    for (int64_t row = first; row < last; ++row) {
      int64_t at = 0, rest = row;
      for (size_t axis = outer_.size(); axis-- > 0 && at >= 0;) {
        const int64_t size = std::ssize(outer_[axis]);
        const int64_t offset = outer_[axis][static_cast<size_t>(rest % size)];
        at = offset < 0 ? -1 : at + offset;
        rest /= size;
      }
      T* line = to + row * row_;
      if (at == before)
        std::memcpy(line, line - row_, static_cast<size_t>(bytes));
      else if (at < 0)
        std::fill_n(line, row_, fill);
      else
        run_row(from + at, fill, line);
      before = at;
    }
  });
}

void MappedPlan::run(const void* from, const void* fill, void* to) const noexcept {
  if (row_ == 0 || rows_ == 0) return;
  const auto go = [&]<typename T>() {
    T value{};
    if (fill) std::memcpy(&value, fill, sizeof(T));
    run_as(static_cast<const T*>(from), value, static_cast<T*>(to));
  };
  switch (size_) {
    case 1: return go.template operator()<uint8_t>();
    case 2: return go.template operator()<uint16_t>();
    case 4: return go.template operator()<uint32_t>();
    default: return go.template operator()<uint64_t>();
  }
}

}  // namespace dais
