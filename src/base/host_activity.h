#pragma once

#include <cstdint>
#include <vector>

namespace dais {

/// What this process does itself, as far as it explains why a device has work or none.
enum class HostActivity : uint8_t {
  run,            ///< a model or a training step runs on the CPU
  wait_for_data,  ///< what would run next has no input yet: it is read, decoded or drawn
};

/// The process is at that while this lives. Next to nothing is done unless somebody records.
class HostStretch {
 public:
  explicit HostStretch(HostActivity what) noexcept;
  ~HostStretch();
  HostStretch(const HostStretch&) = delete;
  HostStretch& operator=(const HostStretch&) = delete;

 private:
  uint64_t number_ = 0;  ///< of the stretch; 0: it is not recorded
};

struct HostRecord {
  HostActivity what = HostActivity::run;
  double start = 0, seconds = 0;  ///< on the steady clock
};

/// Records the stretches that begin while it lives, of all threads. One at a time.
class HostRecorder {
 public:
  HostRecorder();
  ~HostRecorder();
  HostRecorder(const HostRecorder&) = delete;
  HostRecorder& operator=(const HostRecorder&) = delete;

  /// What was not taken before, by end. Of stretches that go on it gives what lies behind them, and
  /// later the rest.
  std::vector<HostRecord> take();
};

}  // namespace dais
