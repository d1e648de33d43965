#pragma once

#include "backends/cuda/device.h"

namespace dais::cuda {

/// A stream of a device; owns it, so that memory can be given back after its user is gone.
class Stream {
 public:
  explicit Stream(std::shared_ptr<Device> device);
  ~Stream();
  Stream(const Stream&) = delete;
  Device& device() const { return *device_; }
  DriverStream handle() const { return handle_; }

 private:
  std::shared_ptr<Device> device_;
  DriverStream handle_ = nullptr;
};

}  // namespace dais::cuda
