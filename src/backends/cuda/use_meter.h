#pragma once

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/activity.h"
#include "base/host_activity.h"
#include "devices/use.h"

namespace dais::cuda {

/// While one lives, this process publishes (devices/use.h) what it does on the CPU and on its GPUs:
/// each period the one before the last, so that what ended late is in it.
class UseMeter {
 public:
  /// Throws `unavailable` when the folder cannot be made.
  explicit UseMeter(const std::filesystem::path& folder, double every_s = 1);
  ~UseMeter();
  UseMeter(const UseMeter&) = delete;

  /// From now on also of GPUs. `devices`: the UUIDs of those that this process sees, in its order.
  /// Where CUPTI refuses, why it does is published instead.
  void watch(const Loaded<CuptiApi>& library, std::vector<std::string> devices);

 private:
  /// A moment between two periods.
  struct Moment {
    double at = 0;         ///< on the steady clock
    double processor = 0;  ///< seconds that this process had of all CPUs
    static Moment now();
  };
  void run(double every_s);
  void gather();
  std::string name_of(int device) const;
  void publish(const Moment& from, const Moment& to);

  std::filesystem::path file_;
  devices::ProcessUse mine_;
  HostRecorder host_;
  std::unique_ptr<ActivityRecorder> recorder_;
  std::vector<std::string> devices_;
  std::vector<Activity> pending_;  ///< what may reach into periods that are not published yet
  std::set<int> used_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace dais::cuda
