#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace dais::jobs {

/// What shows that a job does something.
struct Signs {
  int64_t output_bytes = 0;          ///< it printed
  std::optional<double> cpu_s;       ///< it computed
  std::optional<bool> devices_busy;  ///< a kernel of it ran since the last look
  bool has_devices = false;
};

/// Since when jobs have shown no sign of life. What nobody measures counts as one: a job is called
/// stuck only when everything says so.
class Activity {
 public:
  /// A job that uses less than this part of a core only waits.
  static constexpr double least_cpu = 0.01;

  void look(int64_t job, double at_s, const Signs& signs);
  void forget(int64_t job) { states_.erase(job); }
  /// Seconds without a sign; 0 for a job that was not looked at.
  double quiet_s(int64_t job, double now_s) const;

 private:
  struct State {
    Signs signs;
    double at_s = 0, moved_s = 0;
  };
  std::map<int64_t, State> states_;
};

}  // namespace dais::jobs
