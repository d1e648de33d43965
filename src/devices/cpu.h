#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace dais::devices {

/// What the CPUs and memory of this machine tell at one moment. What the system does not tell is
/// missing: never 0.
struct CpuSample {
  std::optional<double> utilisation;  ///< part of the CPUs' time that was spent on work, lately
  std::optional<int64_t> memory_used_bytes, memory_total_bytes;
};

/// Reads /proc. Safe from any thread.
class CpuMeter {
 public:
  /// `root` is where /proc lies. Utilisation is that since the last reading that is at least
  /// `over_s` old; it is missing before there is one.
  explicit CpuMeter(std::string root = "", double over_s = 1);
  CpuSample sample();

 private:
  struct Times {
    double at_s = 0;
    uint64_t busy = 0, all = 0;  // ticks of all CPUs
  };
  std::optional<Times> times() const;

  const std::string root_;
  const double over_s_;
  std::mutex mutex_;
  std::optional<Times> before_, latest_;
};

}  // namespace dais::devices
