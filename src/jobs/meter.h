#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "devices/nvml.h"

namespace dais::jobs {

/// One job on one device, and the processes it has there.
struct Holding {
  int64_t job = 0;
  int device = 0;
  int32_t gpu_milli = 0;  ///< 1000: nobody else is on the device
  std::vector<int> pids;
};

/// What one attempt of a job did with its GPUs. Times are in GPU seconds: two devices held for a
/// second make two. Held time is kernel, idle and unknown time together.
struct Use {
  double held_s = 0;
  double kernel_s = 0;                ///< at least one kernel ran
  double idle_s = 0;                  ///< none did
  double unknown_s = 0;               ///< nobody told
  std::optional<double> moved_bytes;  ///< over PCIe both ways; of whole devices only
  std::optional<double> energy_j;     ///< of whole devices only
  std::optional<int64_t> memory_bytes, memory_peak_bytes;
  double idle_since_s = -1;  ///< since when no kernel ran; -1: one did at the last sample
};

/// How the time of one device was spent.
struct DeviceUse {
  double kernel_s = 0;
  double idle_held_s = 0;  ///< a job held it and ran nothing
  double idle_free_s = 0;  ///< no job held it
  double unknown_s = 0;
};

/// Adds up samples: each stands for the time since the one before it, and a gap longer than
/// `longest_gap_s` is unknown. No clock and no I/O of its own.
class Meter {
 public:
  static constexpr double longest_gap_s = 5;

  void sample(double at_s, const std::vector<devices::DeviceSample>& samples,
              const std::vector<Holding>& holdings, int device_count);
  /// A job's use so far; nothing before its first sample.
  std::optional<Use> use(int64_t job) const;
  /// Gives a job's use and forgets it.
  Use take(int64_t job);
  const std::map<int, DeviceUse>& devices() const { return devices_; }

 private:
  void add(Use& use, double at_s, double span_s, const Holding& holding,
           const devices::DeviceSample* sample);

  std::optional<double> last_s_;
  std::map<int64_t, Use> uses_;
  std::map<int, DeviceUse> devices_;
  std::map<int, double> energy_;  // counters at the last sample
};

}  // namespace dais::jobs
