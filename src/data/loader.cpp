#include "data/loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/host_activity.h"
#include "base/threads.h"
#include "data/batch.h"
#include "data/order.h"

namespace dais::data {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A few names and labels stand for the whole dataset.
std::string fingerprint_of(const Dataset& dataset) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](std::string_view text) {
    for (const char letter : text) hash = (hash ^ static_cast<uint8_t>(letter)) * 0x100000001b3;
  };
  constexpr int64_t kProbes = 64;
  const int64_t size = dataset.size();
  for (int64_t i = 0; i < std::min(size, kProbes); ++i) {
    const int64_t index = size <= kProbes ? i : i * (size - 1) / (kProbes - 1);
    // Only the last part of a name: the folder may have moved.
    const std::string name = dataset.name(index);
    add(name.substr(name.rfind('/') + 1));
    add(std::to_string(dataset.label(index)));
  }
  for (const auto& name : dataset.description().classes) add(name);
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

/// Threads beside the compute team only where cores are left over: a team that shares a core with a
/// decoder waits for it in every region.
int chosen_workers(int asked) {
  return asked >= 0 ? asked : std::max(0, usable_cores() - team_size());
}

}  // namespace

class Loader::State {
 public:
  State(DatasetPtr dataset, LoaderOptions options)
      : dataset_(std::move(dataset)),
        options_(std::move(options)),
        dealer_(*dataset_, options_),
        maker_(*dataset_, options_),
        fingerprint_(fingerprint_of(*dataset_)),
        delivered_(dealer_.start_of(0)),
        planned_(delivered_) {
    options_.ahead = std::max<int64_t>(1, options_.ahead);
    const int workers = chosen_workers(options_.workers);
    for (int i = 0; i < workers; ++i) workers_.emplace_back([this] { work(); });
  }

  ~State() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (auto& worker : workers_) worker.join();
  }

  const Dataset& dataset() const { return *dataset_; }
  const LoaderOptions& options() const { return options_; }
  int64_t steps_per_epoch() const { return dealer_.steps_per_epoch(); }

  Batch next() {
    const HostStretch waiting(HostActivity::wait_for_data);
    const auto start = Clock::now();
    if (workers_.empty() && ready_.empty()) fill(1);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty() && ready_.front().done; });
    if (ready_.front().failure) {
      const std::exception_ptr failure = ready_.front().failure;
      std::rethrow_exception(failure);
    }
    Slot slot = std::move(ready_.front());
    ready_.pop_front();
    ++first_;
    ready_bytes_ -= slot.bytes;
    delivered_ = slot.next;
    times_.waited_s += seconds_since(start);
    ++times_.batches;
    times_.samples += slot.batch.size();
    lock.unlock();
    changed_.notify_all();
    return std::move(slot.batch);
  }

  void top_up() {
    if (!workers_.empty()) return;
    const auto count = static_cast<int64_t>(ready_.size());
    if (count > options_.ahead / 2) return;
    const HostStretch waiting(HostActivity::wait_for_data);
    const auto start = Clock::now();
    // A failure is reported by the next() that needs the batch.
    if (count == 0 || (ready_bytes_ < options_.ahead_bytes && !ready_.back().failure))
      fill(room(count));
    times_.waited_s += seconds_since(start);
  }

  std::string position() const {
    const std::lock_guard lock(mutex_);
    return nlohmann::json{{"version", 1},
                          {"seed", options_.seed},
                          {"epoch", delivered_.epoch},
                          {"taken", delivered_.taken},
                          {"order_batch", delivered_.order_batch},
                          {"samples", dataset_->size()},
                          {"dataset", fingerprint_}}
        .dump();
  }

  void seek(std::string_view text) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    Place place;
    try {
      check_position(json);
      place = {json.at("epoch"), json.at("taken"), json.at("order_batch")};
    } catch (const nlohmann::json::exception&) {
      throw Error(Code::invalid_argument, "this is no position of a loader", "loader");
    }
    if (place.epoch < 0 || place.taken < 0 || place.taken > dataset_->size() ||
        place.order_batch < 1)
      throw Error(Code::invalid_argument, "a position outside the dataset", "loader");
    go_to(place);
  }

  void seek_epoch(int64_t epoch) { go_to(dealer_.start_of(epoch)); }

  LoaderTimes times() const {
    const std::lock_guard lock(mutex_);
    return times_;
  }

 private:
  /// A batch that is planned; `done` once it is made or has failed.
  struct Slot {
    Batch batch;
    Place next;
    size_t bytes = 0;
    bool done = false;
    std::exception_ptr failure;
  };

  void check_position(const nlohmann::json& json) const {
    if (json.at("version") != 1)
      throw Error(Code::unsupported, "a position of another version of the loader", "loader");
    if (json.at("seed").get<uint64_t>() != options_.seed)
      throw Error(Code::invalid_argument,
                  "the position was made with seed " + json.at("seed").dump(), "loader",
                  "Use that seed");
    if (json.at("samples") != dataset_->size() || json.at("dataset") != fingerprint_)
      throw Error(Code::invalid_argument,
                  "the position belongs to another dataset (of " + json.at("samples").dump() +
                      " samples; this one has " + std::to_string(dataset_->size()) + ")",
                  "loader", "Use the data that the run began with");
  }

  void go_to(const Place& place) {
    const std::lock_guard lock(mutex_);
    ++generation_;
    ready_.clear();
    ready_bytes_ = 0;
    delivered_ = planned_ = place;
    changed_.notify_all();
  }

  /// Batches that may be made now, by what the last one took.
  int64_t room(int64_t count) const {
    const int64_t by_count = options_.ahead - count;
    if (last_bytes_ == 0) return std::min<int64_t>(by_count, 1);
    const size_t free =
        options_.ahead_bytes > ready_bytes_ ? options_.ahead_bytes - ready_bytes_ : 0;
    return std::clamp<int64_t>(static_cast<int64_t>(free / last_bytes_), count == 0, by_count);
  }

  /// Makes `count` batches on the compute pool. Only without worker threads.
  void fill(int64_t count) {
    std::vector<BatchMaker::Work> works;
    std::vector<std::pair<size_t, int64_t>> samples;
    for (int64_t i = 0; i < count; ++i) {
      StepPlan plan = dealer_.plan(planned_);
      planned_ = plan.next;
      works.push_back(maker_.begin(std::move(plan)));
      for (size_t k = 0; k < works.back().samples.size(); ++k)
        samples.emplace_back(works.size() - 1, static_cast<int64_t>(k));
    }
    std::vector<std::exception_ptr> failures(samples.size());
    std::atomic<double> decoded = 0;
    parallel_for(static_cast<int64_t>(samples.size()), 1, [&](int64_t begin, int64_t end) {
      const auto chunk_start = Clock::now();
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
        try {
          maker_.make_sample(works[samples[i].first], samples[i].second);
        } catch (...) {
          failures[i] = std::current_exception();
        }
      }
      decoded += seconds_since(chunk_start);
    });
    std::vector<std::exception_ptr> first_failures(works.size());
    for (size_t i = samples.size(); i-- > 0;)
      if (failures[i]) first_failures[samples[i].first] = failures[i];
    for (size_t i = 0; i < works.size(); ++i) push(std::move(works[i]), first_failures[i]);
    times_.decoded_s += decoded;
  }

  void push(BatchMaker::Work work, std::exception_ptr failure) {
    Slot slot;
    slot.next = work.plan.next;
    slot.done = true;
    slot.failure = std::move(failure);
    if (!slot.failure) finish(std::move(work), slot);
    last_bytes_ = std::max(last_bytes_, slot.bytes);
    ready_bytes_ += slot.bytes;
    ready_.push_back(std::move(slot));
  }

  void finish(BatchMaker::Work work, Slot& slot) const {
    try {
      slot.batch = maker_.finish(std::move(work));
      slot.bytes = bytes_of(slot.batch);
    } catch (...) {
      slot.failure = std::current_exception();
    }
  }

  bool may_plan() const {
    if (ready_.empty()) return true;
    if (ready_.back().failure) return false;
    const auto count = static_cast<int64_t>(ready_.size());
    return count < options_.ahead &&
           static_cast<size_t>(count + 1) * last_bytes_ <= options_.ahead_bytes;
  }

  /// A worker thread: plans the next batch, makes it unlocked, and puts it into its slot.
  void work() {
    set_team_size(1);
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || may_plan(); });
      if (stopping_) return;
      const uint64_t generation = generation_;
      Slot made;
      StepPlan plan;
      try {
        plan = dealer_.plan(planned_);
      } catch (...) {
        made.failure = std::current_exception();
        plan.next = planned_;
      }
      planned_ = made.next = plan.next;
      const uint64_t number = first_ + ready_.size();
      ready_.emplace_back();
      lock.unlock();
      const auto start = Clock::now();
      if (!made.failure) make(std::move(plan), made);
      const double took = seconds_since(start);
      lock.lock();
      times_.decoded_s += took;
      // After a seek nobody wants the batch any more.
      if (generation != generation_) continue;
      made.done = true;
      last_bytes_ = std::max(last_bytes_, made.bytes);
      ready_bytes_ += made.bytes;
      ready_[number - first_] = std::move(made);
      changed_.notify_all();
    }
  }

  void make(StepPlan plan, Slot& slot) const {
    try {
      BatchMaker::Work work = maker_.begin(std::move(plan));
      const auto count = static_cast<int64_t>(work.samples.size());
      for (int64_t i = 0; i < count; ++i) maker_.make_sample(work, i);
      finish(std::move(work), slot);
    } catch (...) {
      slot.failure = std::current_exception();
    }
  }

  DatasetPtr dataset_;
  LoaderOptions options_;
  Dealer dealer_;
  BatchMaker maker_;
  std::string fingerprint_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Slot> ready_;  ///< planned batches in order; the first has the number `first_`
  uint64_t first_ = 0, generation_ = 0;
  size_t ready_bytes_ = 0, last_bytes_ = 0;
  Place delivered_, planned_;
  bool stopping_ = false;
  LoaderTimes times_;
  std::vector<std::thread> workers_;
};

Loader::Loader(DatasetPtr dataset, LoaderOptions options)
    : state_(std::make_unique<State>(std::move(dataset), std::move(options))) {}
Loader::~Loader() = default;
const Dataset& Loader::dataset() const { return state_->dataset(); }
const LoaderOptions& Loader::options() const { return state_->options(); }
int64_t Loader::steps_per_epoch() const { return state_->steps_per_epoch(); }
Batch Loader::next() { return state_->next(); }
void Loader::top_up() { state_->top_up(); }
std::string Loader::position() const { return state_->position(); }
void Loader::seek(std::string_view position) { state_->seek(position); }
void Loader::seek_epoch(int64_t epoch) { state_->seek_epoch(epoch); }
LoaderTimes Loader::times() const { return state_->times(); }

}  // namespace dais::data
