#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "jobs/controller.h"

namespace dais::jobs {

/// Runs a controller on one thread and lets any thread ask it. Submissions that arrive together
/// share one commit. Jobs outlive it.
class Daemon {
 public:
  explicit Daemon(Controller::Options options);
  ~Daemon();
  Daemon(const Daemon&) = delete;

  /// Works until stop() is called; then requests are refused.
  void run();
  /// Safe from any thread and from signal handlers.
  void stop();

  /// Ids, once the jobs are on disk.
  std::vector<int64_t> submit(std::vector<Controller::Submission> submissions);

  /// Runs a call on the controller's thread and gives its result or its error.
  template <typename Call>
  auto ask(Call call) -> std::invoke_result_t<Call, Controller&> {
    using Result = std::invoke_result_t<Call, Controller&>;
    auto task = std::make_shared<std::packaged_task<Result(Controller&)>>(std::move(call));
    auto result = task->get_future();
    post([task](Controller& controller) { (*task)(controller); });
    return result.get();
  }

 private:
  struct Pending {
    std::vector<Controller::Submission> submissions;
    std::promise<std::vector<int64_t>> ids;
  };

  void post(std::function<void(Controller&)> call);
  void wake() const;
  void serve_requests();
  void accept(std::vector<Pending>& pending);
  double step();
  void wait(double seconds) const;

  Controller controller_;
  int wake_ = -1;  // an eventfd
  std::mutex mutex_;
  std::deque<std::function<void(Controller&)>> calls_;
  std::vector<Pending> pending_;
  bool closed_ = false;  // no thread will answer any more
  volatile bool stopping_ = false;
};

/// Seconds since 1970 at the first call, then by a clock that nobody sets.
double steady_now_s();

}  // namespace dais::jobs
