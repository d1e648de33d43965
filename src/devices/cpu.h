#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "devices/sample.h"

namespace dais::devices {

/// Reads /proc and the files of control groups. Safe from any thread.
class CpuMeter {
 public:
  /// `root` is where /proc and /sys lie. Utilisation is that since the last reading that is at
  /// least `over_s` old; it is missing before there is one.
  explicit CpuMeter(std::string root = "", double over_s = 1);
  CpuSample sample();

 private:
  struct Times {
    double at_s = 0;
    uint64_t busy = 0, all = 0;  // ticks of all CPUs
  };
  std::optional<Times> times() const;
  void add_groups(CpuSample& out) const;

  const std::string root_;
  const double over_s_;
  std::mutex mutex_;
  std::optional<Times> before_, latest_;
};

}  // namespace dais::devices
