#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/api/cupti.h"

namespace dais::cuda {

/// Something that the device did, or that the host waited for.
struct Activity {
  enum class Kind { kernel, to_device, from_device, on_device, fill, wait };
  Kind kind = Kind::kernel;
  std::string name;  ///< of a kernel
  double start = 0;  ///< seconds on the steady clock
  double seconds = 0;
  uint32_t stream = 0;
  int device = -1;     ///< as this process counts them; -1: waiting, for whichever
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

/// What of a stretch of time the device spent in kernels, and why it ran none for the rest.
struct DeviceUse {
  double seconds = 0;
  double kernels = 0;         ///< at least one ran
  double copies = 0;          ///< none ran while something was copied
  double synchronising = 0;   ///< nor that, while the host waited for it
  double nothing_queued = 0;  ///< none of these: the host had put no work there
  double to_device_bytes = 0, from_device_bytes = 0;
};
/// Of one device, and of what waited, in [from, to) on the steady clock.
DeviceUse device_use(const std::vector<Activity>& activities, int device, double from, double to);

}  // namespace dais::cuda
