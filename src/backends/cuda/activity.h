#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/api/cupti.h"
#include "devices/sample.h"

namespace dais::cuda {

/// Something that a device did, or that the host waited for.
struct Activity {
  enum class Kind { kernel, to_device, from_device, on_device, fill, wait, data };
  static constexpr int kAny = -1, kCpu = -2;
  Kind kind = Kind::kernel;  ///< wait: for a device; data: for what comes next
  std::string name;          ///< of a kernel
  double start = 0;          ///< seconds on the steady clock
  double seconds = 0;
  uint32_t stream = 0;
  int device = kAny;   ///< as this process counts them; kAny: waiting, kCpu: what the host ran
  uint64_t bytes = 0;  ///< of copies and fills
};

/// Records what the device does from its making until stop(). At most one at a time in a process.
class ActivityRecorder {
 public:
  /// Throws `unavailable` with the remedy when the library refuses (counters of a device may be for
  /// the administrator only), and `invalid_argument` when one is at work already.
  explicit ActivityRecorder(const CuptiApi& api);
  ~ActivityRecorder();
  ActivityRecorder(const ActivityRecorder&) = delete;

  /// All that ended since, by start. The device's work must have been waited for.
  std::vector<Activity> stop();
  /// What the library has ready by now and was not taken before, by start; recording goes on.
  std::vector<Activity> take();

 private:
  static std::vector<Activity> taken();

  const CuptiApi& api_;
  bool running_ = false;
};

using devices::DeviceUse;
/// What of [from, to) on the steady clock one device computed, and why it did not for the rest.
DeviceUse device_use(const std::vector<Activity>& activities, int device, double from, double to);

}  // namespace dais::cuda
