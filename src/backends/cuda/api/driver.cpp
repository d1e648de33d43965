#include "backends/cuda/api/driver.h"

#include <array>

namespace dais::cuda {
namespace {

void find_devices(Library& library, DriverApi& api) {
  library.find("cuInit", api.init);
  library.find("cuDriverGetVersion", api.driver_get_version);
  library.find("cuGetErrorName", api.get_error_name);
  library.find("cuGetErrorString", api.get_error_string);
  library.find("cuDeviceGet", api.device_get);
  library.find("cuDeviceGetCount", api.device_get_count);
  library.find("cuDeviceGetName", api.device_get_name);
  library.find("cuDeviceGetUuid_v2", api.device_get_uuid);
  library.find("cuDeviceTotalMem_v2", api.device_total_mem);
  library.find("cuDeviceGetAttribute", api.device_get_attribute);
  library.find("cuDeviceGetPCIBusId", api.device_get_pci_bus_id);
  library.find("cuDevicePrimaryCtxRetain", api.device_primary_ctx_retain);
  library.find("cuDevicePrimaryCtxRelease_v2", api.device_primary_ctx_release);
  library.find("cuCtxSetCurrent", api.ctx_set_current);
  library.find("cuCtxGetCurrent", api.ctx_get_current);
  library.find("cuCtxSynchronize", api.ctx_synchronize);
}

void find_modules(Library& library, DriverApi& api) {
  library.find("cuModuleLoadData", api.module_load_data);
  library.find("cuModuleUnload", api.module_unload);
  library.find("cuModuleGetFunction", api.module_get_function);
  library.find("cuFuncGetAttribute", api.func_get_attribute);
  library.find("cuFuncSetAttribute", api.func_set_attribute);
  library.find("cuOccupancyMaxActiveBlocksPerMultiprocessor",
               api.occupancy_max_active_blocks_per_multiprocessor);
  library.find("cuLaunchKernel", api.launch_kernel);
  library.find("cuGraphInstantiateWithFlags", api.graph_instantiate);
  library.find("cuGraphLaunch", api.graph_launch);
  library.find("cuGraphExecUpdate_v2", api.graph_exec_update);
  library.find("cuGraphExecDestroy", api.graph_exec_destroy);
  library.find("cuGraphDestroy", api.graph_destroy);
}

void find_memory(Library& library, DriverApi& api) {
  library.find("cuMemGetInfo_v2", api.mem_get_info);
  library.find("cuMemAlloc_v2", api.mem_alloc);
  library.find("cuMemFree_v2", api.mem_free);
  library.find("cuMemHostAlloc", api.mem_host_alloc);
  library.find("cuMemFreeHost", api.mem_free_host);
  library.find("cuMemPoolCreate", api.mem_pool_create);
  library.find("cuMemPoolDestroy", api.mem_pool_destroy);
  library.find("cuMemPoolTrimTo", api.mem_pool_trim_to);
  library.find("cuMemPoolSetAttribute", api.mem_pool_set_attribute);
  library.find("cuMemPoolGetAttribute", api.mem_pool_get_attribute);
  library.find("cuMemAllocFromPoolAsync", api.mem_alloc_from_pool_async);
  library.find("cuMemFreeAsync", api.mem_free_async);
  library.find("cuMemcpyHtoDAsync_v2", api.memcpy_htod_async);
  library.find("cuMemcpyDtoHAsync_v2", api.memcpy_dtoh_async);
  library.find("cuMemcpyDtoDAsync_v2", api.memcpy_dtod_async);
  library.find("cuMemsetD8Async", api.memset_d8_async);
  library.find("cuMemsetD32Async", api.memset_d32_async);
}

void find_streams(Library& library, DriverApi& api) {
  library.find("cuStreamCreate", api.stream_create);
  library.find("cuStreamDestroy_v2", api.stream_destroy);
  library.find("cuStreamSynchronize", api.stream_synchronize);
  library.find("cuStreamQuery", api.stream_query);
  library.find("cuStreamWaitEvent", api.stream_wait_event);
  library.find("cuStreamBeginCapture_v2", api.stream_begin_capture);
  library.find("cuStreamEndCapture", api.stream_end_capture);
  library.find("cuEventCreate", api.event_create);
  library.find("cuEventDestroy_v2", api.event_destroy);
  library.find("cuEventRecord", api.event_record);
  library.find("cuEventQuery", api.event_query);
  library.find("cuEventSynchronize", api.event_synchronize);
  library.find("cuEventElapsedTime", api.event_elapsed_time);
}

/// What a failing cuInit means to the person at the machine.
std::string init_remedy(DriverResult result) {
  switch (result) {
    case DriverResult::no_device:
      return "Check that nvidia-smi lists a GPU and that CUDA_VISIBLE_DEVICES does not hide it";
    case DriverResult::stub_library: return "Remove the toolkit's lib64/stubs from LD_LIBRARY_PATH";
    case DriverResult::system_driver_mismatch:
      return "Reboot or reload the kernel module: it is older or newer than libcuda";
    case DriverResult::device_unavailable:
    case DriverResult::not_permitted:
      return "Give this user access to /dev/nvidia* (and free GPUs in exclusive mode)";
    case DriverResult::compat_not_supported_on_device:
      return "Remove the forward-compatibility libcuda: this GPU does not take it";
    default: return "Look at nvidia-smi and the kernel's log for the driver's own report";
  }
}

}  // namespace

std::string result_name(const DriverApi& driver, DriverResult result) {
  const char* text = nullptr;
  if (driver.get_error_name) driver.get_error_name(result, &text);
  if (text) return text;
  return "error " + std::to_string(static_cast<int>(result));
}

Loaded<DriverApi> load_driver() {
  const std::array<std::string, 1> files{"libcuda.so.1"};
  Library library("driver", files,
                  "Install the NVIDIA driver; inside a container, pass the GPU through");
  Loaded<DriverApi> out;
  find_devices(library, out.api);
  find_modules(library, out.api);
  find_memory(library, out.api);
  find_streams(library, out.api);
  if (library.usable()) {
    int version = 0;
    if (out.api.driver_get_version(&version) == DriverResult::success)
      library.report().version = version_text(version);
    if (version < kOldestDriver)
      library.refuse("the driver speaks CUDA " + version_text(version) +
                         " at most, and dais needs " + version_text(kOldestDriver),
                     "Install driver 525 or newer");
  }
  if (library.usable()) {
    const DriverResult result = out.api.init(0);
    if (result != DriverResult::success)
      library.refuse("cuInit says " + result_name(out.api, result), init_remedy(result));
  }
  out.report = library.report();
  return out;
}

}  // namespace dais::cuda
