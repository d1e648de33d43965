#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "devices/nvml.h"

namespace dais::devices {

/// Samples every device once a second on a thread of its own, so that a driver in trouble holds up
/// nobody. Safe from any thread.
class Watch {
 public:
  /// `library` as for Nvml; empty: nothing is watched.
  explicit Watch(std::string library, double every_s = 1);
  ~Watch();
  Watch(const Watch&) = delete;

  struct Reading {
    int64_t number = 0;  ///< counts the readings; 0 before the first
    std::vector<DeviceSample> devices;
    std::string missing;  ///< why no device is measured
  };
  Reading latest() const;
  /// False when nothing is or will be measured.
  bool watching() const { return latest().missing.empty(); }

 private:
  void run();
  void read(const Nvml& nvml);

  const std::string library_;
  const double every_s_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Reading reading_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace dais::devices
