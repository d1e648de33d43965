#include "backends/cuda/stream.h"

#include "backends/cuda/check.h"
#include "base/error.h"

namespace dais::cuda {

Stream::Stream(std::shared_ptr<Device> device) : device_(std::move(device)) {
  device_->enter();
  const DriverApi& driver = device_->driver();
  check(driver, driver.stream_create(&handle_, kStreamNonBlocking), "making a stream");
}

Stream::~Stream() {
  try {
    device_->enter();
  } catch (const Error&) {
    return;  // with its context the stream is gone
  }
  device_->driver().stream_synchronize(handle_);
  device_->driver().stream_destroy(handle_);
  device_->trim();
}

}  // namespace dais::cuda
