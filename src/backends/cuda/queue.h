#pragma once

#include <exception>

#include "backends/cuda/staging.h"
#include "runtime/backend.h"

namespace dais::cuda {

/// What kernels write when data breaks a rule; the first one stands. Lies in device memory.
struct FaultRecord {
  int problem = 0;  ///< 0: none
  int step = 0;
  int64_t index = 0;
};
/// What kernels may report, by number: FaultRecord::problem.
enum class Problem : int { none = 0, index_outside = 1, box_too_large = 2, box_not_finite = 3 };

/// A session's stream with what it needs beside it.
class CudaQueue : public Queue {
 public:
  explicit CudaQueue(std::shared_ptr<Device> device);
  ~CudaQueue() override;

  std::shared_ptr<DeviceMemory> allocate(size_t bytes, const std::string& holder) override;
  void upload(void* to, const void* from, size_t bytes) override;
  void download(void* to, const void* from, size_t bytes) override;
  void copy(void* to, const void* from, size_t bytes) override;
  void run(BoundKernel& kernel, Arguments arguments, int step) override;
  std::unique_ptr<Recording> record(const std::function<void()>& body) override;
  void replay(Recording& recording) override;
  std::optional<QueueFault> wait() override;

  Device& device() const { return stream_->device(); }
  DriverStream stream() const { return stream_->handle(); }
  /// For kernels that check indices: where to write what they find, and the step to name.
  FaultRecord* faults();
  int step() const { return step_; }
  /// Keeps the first failure of work that a kernel puts here; run() throws it.
  void fail(std::exception_ptr failure) noexcept;

 private:
  std::shared_ptr<Stream> stream_;
  Staging staging_;
  std::shared_ptr<DeviceMemory> faults_;
  bool may_fault_ = false;
  int step_ = -1;
  std::exception_ptr failure_;
};

}  // namespace dais::cuda
