#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/kernel.h"

namespace dais {

/// Memory of a device, given back when its last owner lets go of it, behind the work that was
/// queued until then. The address means nothing to the CPU.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual void* address() const = 0;
  virtual size_t bytes() const = 0;
};

/// What a kernel on a device found wrong in its data, and at which step.
struct QueueFault {
  Fault fault;
  int step = -1;
};

/// Work of a queue that was kept to be done again at once. The memory and kernels that it uses must
/// outlive it.
class Recording {
 public:
  virtual ~Recording() = default;
};

/// Work for a device that runs in the order in which it was put there, after the calls return.
/// Belongs to one session and is used by one thread at a time. Calls throw `unavailable` when the
/// device is lost and `exhausted` when its memory is full, naming who holds it.
class Queue {
 public:
  virtual ~Queue() = default;
  /// Memory whose contents are undefined, 256-byte aligned. `holder` says what it is for.
  virtual std::shared_ptr<DeviceMemory> allocate(size_t bytes, const std::string& holder) = 0;
  /// Host to device; `from` may change as soon as the call returns.
  virtual void upload(void* to, const void* from, size_t bytes) = 0;
  /// Device to host; `to` holds the bytes after wait().
  virtual void download(void* to, const void* from, size_t bytes) = 0;
  /// Device to device.
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  /// Runs a kernel bound for this device; faults that it reports carry the step. Throws what
  /// putting its work here met.
  virtual void run(BoundKernel& kernel, Arguments arguments, int step) = 0;
  /// Keeps the kernels that `body` runs here instead of doing them.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& body) = 0;
  /// Puts what was recorded here once more.
  virtual void replay(Recording& recording) = 0;
  /// Waits for all of it. Gives the first fault since the last wait.
  virtual std::optional<QueueFault> wait() = 0;
};

/// A device beside the CPU: memory, queues and a table of kernel rows. Shared by plans and sessions
/// on any thread.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual const std::string& name() const = 0;
  virtual const Kernels& kernels() const = 0;
  virtual std::unique_ptr<Queue> open_queue() = 0;
  /// How much memory could be had now.
  virtual size_t free_bytes() const = 0;
};

}  // namespace dais
