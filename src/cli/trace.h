#pragma once

#include <string>
#include <vector>

#include "backends/cuda/activity.h"
#include "base/span.h"
#include "runtime/session.h"

namespace dais::cli {

/// Collects what happened while a model was loaded and run, for Perfetto or chrome://tracing.
class Trace {
 public:
  void add(const char* kind, std::string name, double start, double seconds);
  void add(const std::vector<SpanRecord>& records);
  /// Steps must come before their plan goes away.
  void add(const std::vector<StepTime>& profile);
  /// What a device did, in lanes of its own: one for the kernels of each stream, one for its
  /// copies.
  void add(const std::vector<cuda::Activity>& activities);
  /// Chrome's trace format: one lane for each thread of the team. Throws when it cannot be written.
  void write(const std::string& path, int threads) const;

 private:
  struct Event {
    SpanRecord span;
    double flops = 0, bytes = 0;
  };
  std::vector<Event> events_;
  std::vector<cuda::Activity> activities_;
};

}  // namespace dais::cli
