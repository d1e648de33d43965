#include <algorithm>
#include <cstdio>
#include <cstring>

#include "backends/cuda/emulated/driver_state.h"

// Device and context. The device says of itself what a small one of compute capability 9.0 would.
namespace dais::cuda::emulated {
namespace {

thread_local DriverContext current = nullptr;

DeviceState& state() { return DeviceState::instance(); }

/// There is one context; the handle is its address.
DriverContext context() { return reinterpret_cast<DriverContext>(&DeviceState::instance()); }

DriverResult valid(DriverDevice device) {
  return device == 0 ? DriverResult::success : DriverResult::invalid_device;
}

int attribute_value(DeviceAttribute attribute) {
  switch (attribute) {
    case DeviceAttribute::max_threads_per_block: return kMostThreads;
    case DeviceAttribute::max_grid_dim_x: return 0x7fffffff;
    case DeviceAttribute::max_grid_dim_y:
    case DeviceAttribute::max_grid_dim_z: return 65535;
    case DeviceAttribute::max_shared_memory_per_block: return 48 * 1024;
    case DeviceAttribute::warp_size: return kWarp;
    case DeviceAttribute::clock_rate: return 1000;
    case DeviceAttribute::multiprocessor_count: return 4;
    case DeviceAttribute::memory_clock_rate: return 1000;
    case DeviceAttribute::global_memory_bus_width: return 64;
    case DeviceAttribute::l2_cache_size: return 1 << 20;
    case DeviceAttribute::max_threads_per_multiprocessor: return 2048;
    case DeviceAttribute::compute_capability_major: return 9;
    case DeviceAttribute::compute_capability_minor: return 0;
    case DeviceAttribute::max_shared_memory_per_multiprocessor: return 164 * 1024;
    case DeviceAttribute::max_registers_per_multiprocessor: return 65536;
    case DeviceAttribute::max_shared_memory_per_block_optin: return 163 * 1024;
    case DeviceAttribute::memory_pools_supported: return 1;
    default: return 0;
  }
}

DriverResult copy_text(char* to, int bytes, const char* text) {
  if (!to || bytes <= 0) return DriverResult::invalid_value;
  std::snprintf(to, static_cast<size_t>(bytes), "%s", text);
  return DriverResult::success;
}

struct NamedResult {
  DriverResult result;
  const char *name, *text;
};
constexpr NamedResult kNames[] = {
    {DriverResult::success, "CUDA_SUCCESS", "no error"},
    {DriverResult::invalid_value, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {DriverResult::out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {DriverResult::invalid_device, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {DriverResult::invalid_image, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {DriverResult::invalid_context, "CUDA_ERROR_INVALID_CONTEXT", "no context is current"},
    {DriverResult::invalid_handle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {DriverResult::not_found, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {DriverResult::illegal_address, "CUDA_ERROR_ILLEGAL_ADDRESS", "illegal memory access"},
    {DriverResult::launch_out_of_resources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {DriverResult::launch_timeout, "CUDA_ERROR_LAUNCH_TIMEOUT", "the kernel waits for ever"},
    {DriverResult::misaligned_address, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {DriverResult::launch_failed, "CUDA_ERROR_LAUNCH_FAILED", "a fault in a kernel"},
    {DriverResult::not_supported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {DriverResult::stream_capture_unsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "not possible while a stream is captured"},
    {DriverResult::stream_capture_invalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "the capture was invalidated"},
    {DriverResult::graph_exec_update_failure, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
     "the graph differs too much"},
};

DriverResult error_text(DriverResult result, const char** text, bool name) {
  for (const NamedResult& named : kNames)
    if (named.result == result) {
      *text = name ? named.name : named.text;
      return DriverResult::success;
    }
  *text = nullptr;
  return DriverResult::invalid_value;
}

}  // namespace

DriverResult DeviceState::ready() const {
  return current ? pending_.load() : DriverResult::invalid_context;
}

void fill_device(DriverApi& api) {
  api.init = [](unsigned) { return DriverResult::success; };
  api.driver_get_version = [](int* version) {
    *version = 13000;
    return DriverResult::success;
  };
  api.get_error_name = [](DriverResult result, const char** text) {
    return error_text(result, text, true);
  };
  // Where a kernel is at fault the text says what was found, until that is taken.
  api.get_error_string = [](DriverResult result, const char** text) {
    thread_local std::string found;
    found = result == DriverResult::success || result != state().pending() ? std::string()
                                                                           : describe_findings();
    if (found.empty()) return error_text(result, text, false);
    *text = found.c_str();
    return DriverResult::success;
  };
  api.device_get = [](DriverDevice* device, int ordinal) {
    *device = 0;
    return valid(ordinal);
  };
  api.device_get_count = [](int* count) {
    *count = 1;
    return DriverResult::success;
  };
  api.device_get_name = [](char* name, int bytes, DriverDevice device) {
    return valid(device) == DriverResult::success ? copy_text(name, bytes, kDeviceName)
                                                  : DriverResult::invalid_device;
  };
  api.device_get_uuid = [](DriverUuid* uuid, DriverDevice device) {
    *uuid = {};
    return valid(device);
  };
  api.device_total_mem = [](size_t* bytes, DriverDevice device) {
    *bytes = state().memory().limit();
    return valid(device);
  };
  api.device_get_attribute = [](int* value, DeviceAttribute attribute, DriverDevice device) {
    *value = attribute_value(attribute);
    return valid(device);
  };
  api.device_get_pci_bus_id = [](char* text, int bytes, DriverDevice device) {
    return valid(device) == DriverResult::success ? copy_text(text, bytes, "none")
                                                  : DriverResult::invalid_device;
  };
  api.device_primary_ctx_retain = [](DriverContext* context_out, DriverDevice device) {
    if (valid(device) != DriverResult::success) return DriverResult::invalid_device;
    ++state().retained;
    *context_out = context();
    return DriverResult::success;
  };
  api.device_primary_ctx_release = [](DriverDevice device) {
    if (valid(device) != DriverResult::success) return DriverResult::invalid_device;
    if (state().retained == 0) return DriverResult::invalid_context;
    --state().retained;
    return DriverResult::success;
  };
  api.ctx_set_current = [](DriverContext wanted) {
    if (wanted && (wanted != context() || state().retained == 0))
      return DriverResult::invalid_context;
    current = wanted;
    return DriverResult::success;
  };
  api.ctx_get_current = [](DriverContext* context_out) {
    *context_out = current;
    return DriverResult::success;
  };
  api.ctx_synchronize = [] {
    state().note_damage();
    return state().ready();
  };
}

}  // namespace dais::cuda::emulated
