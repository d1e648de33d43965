#include "base/host_activity.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/span.h"

namespace dais {
namespace {

struct Open {
  uint64_t number = 0;
  HostRecord record;
};

std::atomic<bool> recording = false;
std::mutex mutex;
uint64_t numbers = 0;
std::vector<Open> open_stretches;
std::vector<HostRecord> ended;

}  // namespace

HostStretch::HostStretch(HostActivity what) noexcept {
  if (!recording.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex);
  try {
    open_stretches.push_back({++numbers, {what, steady_seconds(), 0}});
    number_ = numbers;
  } catch (const std::bad_alloc&) {
    // One record less is better than a run less.
  }
}

HostStretch::~HostStretch() {
  if (number_ == 0) return;
  const std::lock_guard lock(mutex);
  const auto found = std::find_if(open_stretches.begin(), open_stretches.end(),
                                  [this](const Open& one) { return one.number == number_; });
  if (found == open_stretches.end()) return;  // its recorder is gone
  HostRecord record = found->record;
  open_stretches.erase(found);
  record.seconds = steady_seconds() - record.start;
  try {
    ended.push_back(record);
  } catch (const std::bad_alloc&) {
    // As above.
  }
}

HostRecorder::HostRecorder() {
  bool none = false;
  DAIS_CHECK(recording.compare_exchange_strong(none, true));
}

HostRecorder::~HostRecorder() {
  recording = false;
  const std::lock_guard lock(mutex);
  open_stretches.clear();
  ended.clear();
}

std::vector<HostRecord> HostRecorder::take() {
  const std::lock_guard lock(mutex);
  auto out = std::exchange(ended, {});
  const double now = steady_seconds();
  for (Open& one : open_stretches) {
    const double start = std::exchange(one.record.start, now);
    out.push_back({one.record.what, start, now - start});
  }
  return out;
}

}  // namespace dais
