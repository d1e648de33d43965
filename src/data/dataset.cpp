#include "data/dataset.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>

#include "data/draws.h"

namespace dais::data {

std::string_view task_name(Task task) {
  constexpr std::string_view names[] = {"classification", "regression", "segmentation", "detection",
                                        "transcription",  "next_token", "none"};
  return names[static_cast<size_t>(task)];
}

std::string_view input_kind_name(InputKind kind) {
  constexpr std::string_view names[] = {"image", "features", "tokens", "row", "array"};
  return names[static_cast<size_t>(kind)];
}

namespace {

class Subset final : public Dataset {
 public:
  Subset(DatasetPtr whole, std::vector<int64_t> indices)
      : whole_(std::move(whole)), indices_(std::move(indices)) {
    description_ = whole_->description();
    for (const int64_t index : indices_)
      if (index < 0 || index >= whole_->size())
        throw Error(Code::invalid_argument,
                    "sample " + std::to_string(index) + " is outside a dataset of " +
                        std::to_string(whole_->size()),
                    description_.format);
  }
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  Sample read(int64_t index) const override { return whole_->read(at(index)); }
  int64_t label(int64_t index) const override { return whole_->label(at(index)); }
  std::string name(int64_t index) const override { return whole_->name(at(index)); }
  RawSample raw(int64_t index) const override { return whole_->raw(at(index)); }
  int64_t length(int64_t index) const override { return whole_->length(at(index)); }

 private:
  int64_t at(int64_t index) const { return indices_[static_cast<size_t>(index)]; }

  DatasetPtr whole_;
  std::vector<int64_t> indices_;
};

/// Decodes into slots that are written once; a slot is published by its atomic state.
class Cached final : public Dataset {
 public:
  Cached(DatasetPtr whole, size_t limit_bytes)
      : whole_(std::move(whole)), limit_(limit_bytes), slots_(static_cast<size_t>(whole_->size())) {
    description_ = whole_->description();
  }
  int64_t size() const override { return whole_->size(); }
  int64_t label(int64_t index) const override { return whole_->label(index); }
  std::string name(int64_t index) const override { return whole_->name(index); }
  RawSample raw(int64_t index) const override { return whole_->raw(index); }
  int64_t length(int64_t index) const override { return whole_->length(index); }

  Sample read(int64_t index) const override {
    Slot& slot = slots_[static_cast<size_t>(index)];
    if (slot.state.load(std::memory_order_acquire) == State::full) return slot.sample;
    Sample sample = whole_->read(index);
    const size_t bytes = sample.input.bytes() + sample.target.bytes() + sample.classes.bytes();
    State expected = State::empty;
    if (used_.load() + bytes > limit_ ||
        !slot.state.compare_exchange_strong(expected, State::filling))
      return sample;
    used_ += bytes;
    slot.sample = sample;
    slot.state.store(State::full, std::memory_order_release);
    return sample;
  }

 private:
  enum class State : uint8_t { empty, filling, full };
  struct Slot {
    std::atomic<State> state = State::empty;
    Sample sample;
  };

  DatasetPtr whole_;
  size_t limit_;
  mutable std::atomic<size_t> used_ = 0;
  mutable std::vector<Slot> slots_;
};

}  // namespace

DatasetPtr subset(DatasetPtr dataset, std::vector<int64_t> indices) {
  return std::make_shared<Subset>(std::move(dataset), std::move(indices));
}

DatasetPtr cached(DatasetPtr dataset, size_t limit_bytes) {
  return std::make_shared<Cached>(std::move(dataset), limit_bytes);
}

std::vector<std::vector<int64_t>> stratified_parts(const Dataset& dataset,
                                                   std::span<const double> fractions,
                                                   uint64_t seed) {
  double sum = 0;
  for (const double fraction : fractions) {
    if (!(fraction >= 0 && fraction <= 1))
      throw Error(Code::invalid_argument, "a part of " + std::to_string(fraction) + " of the data",
                  "split", "Use fractions from 0 to 1");
    sum += fraction;
  }
  if (sum > 1) throw Error(Code::invalid_argument, "the parts add up to more than 1", "split");
  std::map<int64_t, std::vector<int64_t>> by_class;
  for (int64_t i = 0; i < dataset.size(); ++i) by_class[dataset.label(i)].push_back(i);
  std::vector<std::vector<int64_t>> parts(fractions.size() + 1);
  for (auto& [label, members] : by_class) {
    Draws draws(Purpose::split, seed, 0, label);
    shuffle(members, draws);
    size_t at = 0;
    double wanted = 0;
    for (size_t part = 0; part < fractions.size(); ++part) {
      // Rounding the running sum keeps the parts of a class within one sample of their share.
      wanted += fractions[part] * static_cast<double>(members.size());
      const auto end = std::min(members.size(), static_cast<size_t>(std::llround(wanted)));
      parts[part + 1].insert(parts[part + 1].end(), members.begin() + static_cast<int64_t>(at),
                             members.begin() + static_cast<int64_t>(end));
      at = end;
    }
    parts[0].insert(parts[0].end(), members.begin() + static_cast<int64_t>(at), members.end());
  }
  for (auto& part : parts) std::sort(part.begin(), part.end());
  return parts;
}

}  // namespace dais::data
