#pragma once

#include <cstddef>

#include "backends/cuda/api/library.h"

namespace dais::cuda {

/// What calls of the driver return. Values that are not named here occur too: `error_name` of the
/// table tells what they are.
enum class DriverResult : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  deinitialized = 4,
  stub_library = 34,
  device_unavailable = 46,
  no_device = 100,
  invalid_device = 101,
  invalid_image = 200,
  invalid_context = 201,
  no_binary_for_gpu = 209,
  ecc_uncorrectable = 214,
  invalid_ptx = 218,
  unsupported_ptx_version = 222,
  invalid_handle = 400,
  not_found = 500,
  not_ready = 600,
  illegal_address = 700,
  launch_out_of_resources = 701,
  launch_timeout = 702,
  context_is_destroyed = 709,
  illegal_instruction = 715,
  misaligned_address = 716,
  launch_failed = 719,
  not_permitted = 800,
  not_supported = 801,
  system_not_ready = 802,
  system_driver_mismatch = 803,
  compat_not_supported_on_device = 804,
  stream_capture_unsupported = 900,
  stream_capture_invalidated = 901,
  graph_exec_update_failure = 910,
  unknown = 999,
};

enum class DeviceAttribute : int {
  max_threads_per_block = 1,
  max_grid_dim_x = 5,
  max_grid_dim_y = 6,
  max_grid_dim_z = 7,
  max_shared_memory_per_block = 8,
  warp_size = 10,
  clock_rate = 13,  ///< kHz
  multiprocessor_count = 16,
  integrated = 18,
  compute_mode = 20,
  ecc_enabled = 32,
  memory_clock_rate = 36,  ///< kHz
  global_memory_bus_width = 37,
  l2_cache_size = 38,
  max_threads_per_multiprocessor = 39,
  compute_capability_major = 75,
  compute_capability_minor = 76,
  max_shared_memory_per_multiprocessor = 81,
  max_registers_per_multiprocessor = 82,
  max_shared_memory_per_block_optin = 97,
  memory_pools_supported = 115,
};

enum class FunctionAttribute : int {
  max_threads_per_block = 0,
  shared_size_bytes = 1,
  local_size_bytes = 3,
  num_regs = 4,
  max_dynamic_shared_size_bytes = 8,
};

enum class PoolAttribute : int {
  reuse_follow_event_dependencies = 1,
  reuse_allow_opportunistic = 2,
  reuse_allow_internal_dependencies = 3,
  release_threshold = 4,     ///< uint64_t bytes kept when a synchronisation finds them free
  reserved_mem_current = 5,  ///< uint64_t
  reserved_mem_high = 6,
  used_mem_current = 7,
  used_mem_high = 8,
};

enum class CaptureMode : int { global = 0, thread_local_only = 1, relaxed = 2 };

using DriverDevice = int;
/// An address in device memory; null: none.
using DevicePointer = unsigned long long;
using DriverContext = struct DriverContextTag*;
using DriverModule = struct DriverModuleTag*;
using DriverFunction = struct DriverFunctionTag*;
using DriverStream = struct DriverStreamTag*;
using DriverEvent = struct DriverEventTag*;
using DriverPool = struct DriverPoolTag*;
using DriverGraph = struct DriverGraphTag*;
using DriverGraphExec = struct DriverGraphExecTag*;
using DriverGraphNode = struct DriverGraphNodeTag*;

struct DriverUuid {
  unsigned char bytes[16];
};

struct PoolLocation {
  int type = 1;  ///< 1: a device
  int id = 0;
};

/// How a pool is made: memory of one device, shared with no other process.
struct PoolProps {
  int allocation_type = 1;
  int handle_types = 0;
  PoolLocation location;
  void* security_attributes = nullptr;
  size_t max_bytes = 0;  ///< 0: as much as there is
  unsigned short usage = 0;
  unsigned char reserved[54] = {};
};
static_assert(sizeof(PoolProps) == 88 && offsetof(PoolProps, max_bytes) == 24);

struct GraphUpdateInfo {
  int result = 0;  ///< 0: updated
  DriverGraphNode error_node = nullptr;
  DriverGraphNode error_from_node = nullptr;
};
static_assert(sizeof(GraphUpdateInfo) == 24);

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kHostAllocPortable = 1;

/// Entry points of the driver (libcuda). Each may be called from any thread; those that take no
/// device or context act on the context that is current on the calling thread.
struct DriverApi {
  DriverResult (*init)(unsigned flags);
  DriverResult (*driver_get_version)(int* version);
  /// Leaves the text null for a value that the driver does not know.
  DriverResult (*get_error_name)(DriverResult result, const char** text);
  DriverResult (*get_error_string)(DriverResult result, const char** text);

  DriverResult (*device_get)(DriverDevice* device, int ordinal);
  DriverResult (*device_get_count)(int* count);
  DriverResult (*device_get_name)(char* name, int bytes, DriverDevice device);
  DriverResult (*device_get_uuid)(DriverUuid* uuid, DriverDevice device);
  DriverResult (*device_total_mem)(size_t* bytes, DriverDevice device);
  DriverResult (*device_get_attribute)(int* value, DeviceAttribute attribute, DriverDevice device);
  DriverResult (*device_get_pci_bus_id)(char* text, int bytes, DriverDevice device);
  DriverResult (*device_primary_ctx_retain)(DriverContext* context, DriverDevice device);
  DriverResult (*device_primary_ctx_release)(DriverDevice device);
  DriverResult (*ctx_set_current)(DriverContext context);
  DriverResult (*ctx_get_current)(DriverContext* context);
  DriverResult (*ctx_synchronize)();

  DriverResult (*module_load_data)(DriverModule* module, const void* image);
  DriverResult (*module_unload)(DriverModule module);
  DriverResult (*module_get_function)(DriverFunction* function, DriverModule module,
                                      const char* name);
  DriverResult (*func_get_attribute)(int* value, FunctionAttribute attribute,
                                     DriverFunction function);
  DriverResult (*func_set_attribute)(DriverFunction function, FunctionAttribute attribute,
                                     int value);
  DriverResult (*occupancy_max_active_blocks_per_multiprocessor)(int* blocks,
                                                                 DriverFunction function,
                                                                 int block_threads,
                                                                 size_t dynamic_shared_bytes);

  DriverResult (*mem_get_info)(size_t* free_bytes, size_t* total_bytes);
  DriverResult (*mem_alloc)(DevicePointer* memory, size_t bytes);
  DriverResult (*mem_free)(DevicePointer memory);
  DriverResult (*mem_host_alloc)(void** memory, size_t bytes, unsigned flags);
  DriverResult (*mem_free_host)(void* memory);
  DriverResult (*mem_pool_create)(DriverPool* pool, const PoolProps* props);
  DriverResult (*mem_pool_destroy)(DriverPool pool);
  DriverResult (*mem_pool_trim_to)(DriverPool pool, size_t bytes_to_keep);
  DriverResult (*mem_pool_set_attribute)(DriverPool pool, PoolAttribute attribute, void* value);
  DriverResult (*mem_pool_get_attribute)(DriverPool pool, PoolAttribute attribute, void* value);
  DriverResult (*mem_alloc_from_pool_async)(DevicePointer* memory, size_t bytes, DriverPool pool,
                                            DriverStream stream);
  DriverResult (*mem_free_async)(DevicePointer memory, DriverStream stream);

  DriverResult (*memcpy_htod_async)(DevicePointer to, const void* from, size_t bytes,
                                    DriverStream stream);
  DriverResult (*memcpy_dtoh_async)(void* to, DevicePointer from, size_t bytes,
                                    DriverStream stream);
  DriverResult (*memcpy_dtod_async)(DevicePointer to, DevicePointer from, size_t bytes,
                                    DriverStream stream);
  DriverResult (*memset_d8_async)(DevicePointer memory, unsigned char value, size_t count,
                                  DriverStream stream);
  DriverResult (*memset_d32_async)(DevicePointer memory, unsigned value, size_t count,
                                   DriverStream stream);

  DriverResult (*stream_create)(DriverStream* stream, unsigned flags);
  DriverResult (*stream_destroy)(DriverStream stream);
  DriverResult (*stream_synchronize)(DriverStream stream);
  DriverResult (*stream_query)(DriverStream stream);
  DriverResult (*stream_wait_event)(DriverStream stream, DriverEvent event, unsigned flags);
  DriverResult (*stream_begin_capture)(DriverStream stream, CaptureMode mode);
  DriverResult (*stream_end_capture)(DriverStream stream, DriverGraph* graph);
  DriverResult (*event_create)(DriverEvent* event, unsigned flags);
  DriverResult (*event_destroy)(DriverEvent event);
  DriverResult (*event_record)(DriverEvent event, DriverStream stream);
  DriverResult (*event_query)(DriverEvent event);
  DriverResult (*event_synchronize)(DriverEvent event);
  DriverResult (*event_elapsed_time)(float* milliseconds, DriverEvent start, DriverEvent end);

  /// `parameters` points to one pointer per kernel parameter, to its value; read before the call
  /// returns. `extra` is null.
  DriverResult (*launch_kernel)(DriverFunction function, unsigned grid_x, unsigned grid_y,
                                unsigned grid_z, unsigned block_x, unsigned block_y,
                                unsigned block_z, unsigned shared_bytes, DriverStream stream,
                                void** parameters, void** extra);

  DriverResult (*graph_instantiate)(DriverGraphExec* exec, DriverGraph graph,
                                    unsigned long long flags);
  DriverResult (*graph_launch)(DriverGraphExec exec, DriverStream stream);
  DriverResult (*graph_exec_update)(DriverGraphExec exec, DriverGraph graph, GraphUpdateInfo* info);
  DriverResult (*graph_exec_destroy)(DriverGraphExec exec);
  DriverResult (*graph_destroy)(DriverGraph graph);
};

/// The oldest driver that will do (12.0): it has stream-ordered pools and lazy loading.
inline constexpr int kOldestDriver = 12000;

/// Opens the system's driver and initialises it; `version` is the newest CUDA that it speaks.
Loaded<DriverApi> load_driver();

/// "CUDA_ERROR_OUT_OF_MEMORY" or "error 1234".
std::string result_name(const DriverApi& driver, DriverResult result);

}  // namespace dais::cuda
