#include "jobs/daemon.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "base/span.h"

namespace dais::jobs {
namespace {

constexpr double full_disk_wait_s = 1;

[[noreturn]] void gone() {
  throw Error(Code::unavailable, "the scheduler is stopping", {}, "Start it again with `dais up`");
}

}  // namespace

double steady_now_s() {
  using std::chrono::duration;
  static const auto started = std::chrono::steady_clock::now();
  static const double at = unix_seconds();
  return at + duration<double>(std::chrono::steady_clock::now() - started).count();
}

Daemon::Daemon(Controller::Options options)
    : controller_(std::move(options)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_ < 0) throw Error(Code::exhausted, "no descriptor is left for the scheduler");
}

Daemon::~Daemon() { close(wake_); }

void Daemon::wake() const {
  const uint64_t one = 1;
  // Full means that it is awake already.
  if (write(wake_, &one, sizeof one) < 0) return;
}

void Daemon::stop() {
  stopping_ = true;
  wake();
}

void Daemon::post(std::function<void(Controller&)> call) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) gone();
    calls_.push_back(std::move(call));
  }
  wake();
}

std::vector<int64_t> Daemon::submit(std::vector<Controller::Submission> submissions) {
  std::future<std::vector<int64_t>> ids;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) gone();
    pending_.push_back({std::move(submissions), {}});
    ids = pending_.back().ids.get_future();
  }
  wake();
  return ids.get();
}

// All in one commit; when that is refused, one by one, so that each gets its own answer.
void Daemon::accept(std::vector<Pending>& pending) {
  std::vector<Controller::Submission> all;
  for (const Pending& one : pending) {
    all.insert(all.end(), one.submissions.begin(), one.submissions.end());
  }
  if (pending.size() > 1) {
    try {
      const std::vector<int64_t> ids = controller_.submit(all);
      auto next = ids.begin();
      for (Pending& one : pending) {
        const auto end = next + static_cast<std::ptrdiff_t>(one.submissions.size());
        one.ids.set_value({next, end});
        next = end;
      }
      return;
    } catch (const Error&) {
      // Below.
    }
  }
  for (Pending& one : pending) {
    try {
      one.ids.set_value(controller_.submit(one.submissions));
    } catch (...) {
      one.ids.set_exception(std::current_exception());
    }
  }
}

void Daemon::serve_requests() {
  std::deque<std::function<void(Controller&)>> calls;
  std::vector<Pending> pending;
  {
    const std::lock_guard lock(mutex_);
    calls.swap(calls_);
    pending.swap(pending_);
  }
  if (!pending.empty()) accept(pending);
  for (auto& call : calls) call(controller_);
}

void Daemon::wait(double seconds) const {
  std::vector<pollfd> watched = {{wake_, POLLIN, 0}};
  for (const int fd : controller_.ends()) watched.push_back({fd, POLLIN, 0});
  const int limit_ms =
      seconds > 3600 ? 3'600'000 : static_cast<int>(std::ceil(std::max(0.0, seconds) * 1000));
  poll(watched.data(), watched.size(), limit_ms);
  uint64_t count = 0;
  if (read(wake_, &count, sizeof count) < 0) return;
}

// On a full disk what is to happen cannot be written down, so it does not happen yet.
double Daemon::step() {
  try {
    if (controller_.store().degraded()) controller_.store().recover();
    return controller_.step();
  } catch (const Error& error) {
    if (error.code() != Code::exhausted) throw;
    return full_disk_wait_s;
  }
}

void Daemon::run() {
  while (!stopping_) {
    serve_requests();
    wait(step());
  }
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  serve_requests();
}

}  // namespace dais::jobs
