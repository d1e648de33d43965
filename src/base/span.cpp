#include "base/span.h"

#include <atomic>
#include <mutex>
#include <new>

#include "base/error.h"

namespace dais {
namespace {

std::atomic<SpanLog*> current = nullptr;
std::mutex mutex;

}  // namespace

SpanLog::SpanLog() {
  SpanLog* none = nullptr;
  DAIS_CHECK(current.compare_exchange_strong(none, this));
}

SpanLog::~SpanLog() { current = nullptr; }

Span::Span(const char* kind, std::string_view name, std::string_view subject, int lane) noexcept
    : log_(current.load(std::memory_order_acquire)),
      kind_(kind),
      name_(name),
      subject_(subject),
      lane_(lane) {
  if (log_) start_ = steady_seconds();
}

Span::~Span() {
  if (!log_) return;
  const double seconds = steady_seconds() - start_;
  const std::lock_guard lock(mutex);
  try {
    log_->records_.push_back(
        {kind_, std::string(name_), std::string(subject_), start_, seconds, lane_});
  } catch (const std::bad_alloc&) {
    // One span less is better than a run less.
  }
}

}  // namespace dais
