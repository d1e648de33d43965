#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "backends/cuda/emulated/emulated.h"

namespace dais::cuda::emulated {

// The objects behind the driver's handles, and the one device.

using Work = std::function<DriverResult()>;

struct GraphObject {
  std::vector<Work> steps;
};

struct StreamObject {
  GraphObject* capture = nullptr;  ///< where its work goes instead of being done
  bool origin = false;             ///< the stream that began the capture
};

struct EventObject {
  std::chrono::steady_clock::time_point when;
  bool recorded = false;
  GraphObject* capture = nullptr;
};

struct ModuleObject;
struct FunctionObject {
  std::shared_ptr<const Module> module;
  const KernelInfo* kernel = nullptr;
  std::string name;
  int most_dynamic_bytes = 48 * 1024;
};
struct ModuleObject {
  std::shared_ptr<const Module> module;
  std::unordered_map<std::string, std::unique_ptr<FunctionObject>> functions;
};

struct PoolObject {
  uint64_t used = 0, used_high = 0, threshold = 0;
};

class DeviceState {
 public:
  static DeviceState& instance();

  Memory& memory() { return memory_; }
  Memory& pinned() { return pinned_; }
  /// Device memory that a kernel or a copy may touch, pinned memory included.
  bool holds(DevicePointer first, size_t bytes) const;

  /// The context is current and no fault is pending; else what the call returns.
  DriverResult ready() const;
  DriverResult pending() const { return pending_; }
  void record(LaunchRecord record);
  void note_damage();

  std::vector<LaunchRecord> take_launches();
  std::vector<Finding> take_findings();
  std::string describe_findings();

  std::atomic<bool> checked, recording = false;
  std::atomic<int> retained = 0;
  std::recursive_mutex mutex;  ///< of all that follows
  std::unordered_set<void*> handles;
  std::unordered_map<DevicePointer, std::pair<PoolObject*, size_t>> pooled;

  /// Whether a handle stands for a live object.
  bool knows(const void* handle);
  void learn(void* handle);
  /// False: it was none.
  bool forget(void* handle);

 private:
  DeviceState();

  Memory memory_, pinned_;
  std::atomic<DriverResult> pending_ = DriverResult::success;
  std::vector<LaunchRecord> launches_;
  std::vector<Finding> findings_;
};

/// Does the work, or adds it to what the stream captures.
DriverResult submit(DriverStream stream, Work work);

/// Each part fills its entries of the table.
void fill_device(DriverApi& api);
void fill_memory(DriverApi& api);
void fill_streams(DriverApi& api);
void fill_launches(DriverApi& api);

}  // namespace dais::cuda::emulated
