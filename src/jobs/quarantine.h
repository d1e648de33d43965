#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "devices/nvml.h"

namespace dais::jobs {

/// Devices whose memory stays in use although no job holds them: what an ended job left behind, or
/// somebody else's work. They get no job until it is free. No clock and no I/O of its own.
class Quarantine {
 public:
  /// For so long a device may take to be cleared after its job.
  static constexpr double settle_s = 2;
  /// Above the least that was ever in use, which is the driver's own.
  static constexpr int64_t tolerated_bytes = 256 << 20;

  /// `held`: devices that jobs hold. What a device does not tell changes nothing.
  void sample(double at_s, const std::vector<devices::DeviceSample>& samples,
              const std::set<int>& held);
  /// Devices that must not be given out, with the bytes in use.
  const std::map<int, int64_t>& closed() const { return closed_; }

 private:
  struct State {
    int64_t least_bytes = -1;  // ever in use
    double since_s = -1;       // in use by nobody we know
  };
  std::map<int, State> states_;
  std::map<int, int64_t> closed_;
};

}  // namespace dais::jobs
