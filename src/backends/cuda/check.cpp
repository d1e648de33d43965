#include "backends/cuda/check.h"

#include "base/error.h"

namespace dais::cuda {

bool is_lost(DriverResult result) {
  switch (result) {
    case DriverResult::ecc_uncorrectable:
    case DriverResult::illegal_address:
    case DriverResult::launch_timeout:
    case DriverResult::context_is_destroyed:
    case DriverResult::illegal_instruction:
    case DriverResult::misaligned_address:
    case DriverResult::launch_failed:
    case DriverResult::device_unavailable:
    case DriverResult::unknown: return true;
    default: return false;
  }
}

namespace {
/// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
std::string result_text(const DriverApi& driver, DriverResult result) {
  const char* text = nullptr;
  if (driver.get_error_string) driver.get_error_string(result, &text);
  return result_name(driver, result) + (text ? " (" + std::string(text) + ")" : std::string());
}
}  // namespace

void check(const DriverApi& driver, DriverResult result, const std::string& action) {
  if (result == DriverResult::success) return;
  const std::string what = action + ": " + result_text(driver, result);
  if (result == DriverResult::out_of_memory)
    throw Error(Code::exhausted, what, "GPU", "Use a smaller batch or free memory of the device");
  if (is_lost(result))
    throw Error(Code::unavailable, what, "GPU",
                "The device is lost to this process: start it again, and look at the kernel's log "
                "(dmesg, XID errors) when that does not help");
  if (result == DriverResult::not_permitted || result == DriverResult::system_not_ready)
    throw Error(Code::unavailable, what, "GPU", "Check nvidia-smi and the rights on /dev/nvidia*");
  throw Error(Code::internal, what, "GPU");
}

}  // namespace dais::cuda
