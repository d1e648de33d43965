// What this project says of NVIDIA's libraries against the toolkit's own headers, where those are
// installed: values, layouts of structs and the shapes of entry points. They are compared when this
// file is compiled; nothing is linked.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "backends/cuda/api/cublaslt.h"
#include "backends/cuda/api/cudnn.h"
#include "backends/cuda/api/cupti.h"
#include "backends/cuda/api/driver.h"
#include "backends/cuda/api/nvrtc.h"

#if __has_include(<cuda.h>)
#define DAIS_HAS_CUDA 1
#include <cuda.h>
#endif
#if __has_include(<cublasLt.h>)
#define DAIS_HAS_CUBLASLT 1
#include <cublasLt.h>
#endif
#if __has_include(<cudnn.h>)
#define DAIS_HAS_CUDNN 1
#include <cudnn.h>
#endif
#if __has_include(<cupti.h>)
#define DAIS_HAS_CUPTI 1
#include <cupti.h>
#endif
#if __has_include(<nvrtc.h>)
#define DAIS_HAS_NVRTC 1
#include <nvrtc.h>
#endif

namespace dais::cuda {
namespace {

template <typename T>
inline constexpr bool is_number = std::is_integral_v<T> || std::is_enum_v<T>;

// Whether a caller that believes in Ours passes what a function of Theirs takes.
template <typename Ours, typename Theirs>
inline constexpr bool passes = (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) ||
                               (is_number<Ours> && is_number<Theirs> &&
                                sizeof(Ours) == sizeof(Theirs)) ||
                               std::is_same_v<Ours, Theirs>;
template <>
inline constexpr bool passes<void, void> = true;

template <typename Ours, typename Theirs>
struct SameCall : std::false_type {};
template <typename R, typename... Args, typename TheirR, typename... TheirArgs>
requires(sizeof...(Args) ==
         sizeof...(TheirArgs)) struct SameCall<R (*)(Args...), TheirR (*)(TheirArgs...)>
    : std::bool_constant<passes<R, TheirR> && (passes<Args, TheirArgs> && ...)> {
};

static_assert(SameCall<void (*)(DriverResult, void*), void (*)(int, const char*)>::value);
static_assert(!SameCall<void (*)(int), void (*)(long)>::value);
static_assert(!SameCall<void (*)(int), void (*)(float)>::value);
static_assert(!SameCall<void (*)(int), void (*)(int, int)>::value);

// An entry of a table, and the function that it is filled with.
#define DAIS_CALL(table, entry, function) \
  static_assert(SameCall<decltype(table::entry), decltype(&(function))>::value)
#define DAIS_VALUE(ours, theirs) static_assert(static_cast<long>(ours) == static_cast<long>(theirs))

#ifdef DAIS_HAS_CUDA
DAIS_VALUE(DriverResult::success, CUDA_SUCCESS);
DAIS_VALUE(DriverResult::invalid_value, CUDA_ERROR_INVALID_VALUE);
DAIS_VALUE(DriverResult::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
DAIS_VALUE(DriverResult::not_initialized, CUDA_ERROR_NOT_INITIALIZED);
DAIS_VALUE(DriverResult::deinitialized, CUDA_ERROR_DEINITIALIZED);
DAIS_VALUE(DriverResult::stub_library, CUDA_ERROR_STUB_LIBRARY);
DAIS_VALUE(DriverResult::device_unavailable, CUDA_ERROR_DEVICE_UNAVAILABLE);
DAIS_VALUE(DriverResult::no_device, CUDA_ERROR_NO_DEVICE);
DAIS_VALUE(DriverResult::invalid_device, CUDA_ERROR_INVALID_DEVICE);
DAIS_VALUE(DriverResult::invalid_image, CUDA_ERROR_INVALID_IMAGE);
DAIS_VALUE(DriverResult::invalid_context, CUDA_ERROR_INVALID_CONTEXT);
DAIS_VALUE(DriverResult::no_binary_for_gpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
DAIS_VALUE(DriverResult::ecc_uncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE);
DAIS_VALUE(DriverResult::invalid_ptx, CUDA_ERROR_INVALID_PTX);
DAIS_VALUE(DriverResult::unsupported_ptx_version, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
DAIS_VALUE(DriverResult::invalid_handle, CUDA_ERROR_INVALID_HANDLE);
DAIS_VALUE(DriverResult::not_found, CUDA_ERROR_NOT_FOUND);
DAIS_VALUE(DriverResult::not_ready, CUDA_ERROR_NOT_READY);
DAIS_VALUE(DriverResult::illegal_address, CUDA_ERROR_ILLEGAL_ADDRESS);
DAIS_VALUE(DriverResult::launch_out_of_resources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
DAIS_VALUE(DriverResult::launch_timeout, CUDA_ERROR_LAUNCH_TIMEOUT);
DAIS_VALUE(DriverResult::context_is_destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
DAIS_VALUE(DriverResult::illegal_instruction, CUDA_ERROR_ILLEGAL_INSTRUCTION);
DAIS_VALUE(DriverResult::misaligned_address, CUDA_ERROR_MISALIGNED_ADDRESS);
DAIS_VALUE(DriverResult::launch_failed, CUDA_ERROR_LAUNCH_FAILED);
DAIS_VALUE(DriverResult::not_permitted, CUDA_ERROR_NOT_PERMITTED);
DAIS_VALUE(DriverResult::not_supported, CUDA_ERROR_NOT_SUPPORTED);
DAIS_VALUE(DriverResult::system_not_ready, CUDA_ERROR_SYSTEM_NOT_READY);
DAIS_VALUE(DriverResult::system_driver_mismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
DAIS_VALUE(DriverResult::compat_not_supported_on_device, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
DAIS_VALUE(DriverResult::stream_capture_unsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
DAIS_VALUE(DriverResult::stream_capture_invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
DAIS_VALUE(DriverResult::graph_exec_update_failure, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
DAIS_VALUE(DriverResult::unknown, CUDA_ERROR_UNKNOWN);

DAIS_VALUE(DeviceAttribute::max_threads_per_block, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
DAIS_VALUE(DeviceAttribute::max_grid_dim_x, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
DAIS_VALUE(DeviceAttribute::max_grid_dim_y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
DAIS_VALUE(DeviceAttribute::max_grid_dim_z, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
DAIS_VALUE(DeviceAttribute::max_shared_memory_per_block,
           CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
DAIS_VALUE(DeviceAttribute::warp_size, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
DAIS_VALUE(DeviceAttribute::clock_rate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
DAIS_VALUE(DeviceAttribute::multiprocessor_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
DAIS_VALUE(DeviceAttribute::integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED);
DAIS_VALUE(DeviceAttribute::compute_mode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
DAIS_VALUE(DeviceAttribute::ecc_enabled, CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
DAIS_VALUE(DeviceAttribute::memory_clock_rate, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
DAIS_VALUE(DeviceAttribute::global_memory_bus_width, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
DAIS_VALUE(DeviceAttribute::l2_cache_size, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
DAIS_VALUE(DeviceAttribute::max_threads_per_multiprocessor,
           CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
DAIS_VALUE(DeviceAttribute::compute_capability_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
DAIS_VALUE(DeviceAttribute::compute_capability_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
DAIS_VALUE(DeviceAttribute::max_shared_memory_per_multiprocessor,
           CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
DAIS_VALUE(DeviceAttribute::max_registers_per_multiprocessor,
           CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
DAIS_VALUE(DeviceAttribute::max_shared_memory_per_block_optin,
           CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
DAIS_VALUE(DeviceAttribute::memory_pools_supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);

DAIS_VALUE(FunctionAttribute::max_threads_per_block, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
DAIS_VALUE(FunctionAttribute::shared_size_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
DAIS_VALUE(FunctionAttribute::local_size_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
DAIS_VALUE(FunctionAttribute::num_regs, CU_FUNC_ATTRIBUTE_NUM_REGS);
DAIS_VALUE(FunctionAttribute::max_dynamic_shared_size_bytes,
           CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);

DAIS_VALUE(PoolAttribute::reuse_follow_event_dependencies,
           CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES);
DAIS_VALUE(PoolAttribute::reuse_allow_opportunistic, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC);
DAIS_VALUE(PoolAttribute::reuse_allow_internal_dependencies,
           CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES);
DAIS_VALUE(PoolAttribute::release_threshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
DAIS_VALUE(PoolAttribute::reserved_mem_current, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
DAIS_VALUE(PoolAttribute::reserved_mem_high, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
DAIS_VALUE(PoolAttribute::used_mem_current, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
DAIS_VALUE(PoolAttribute::used_mem_high, CU_MEMPOOL_ATTR_USED_MEM_HIGH);

DAIS_VALUE(CaptureMode::global, CU_STREAM_CAPTURE_MODE_GLOBAL);
DAIS_VALUE(CaptureMode::thread_local_only, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
DAIS_VALUE(CaptureMode::relaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
DAIS_VALUE(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
DAIS_VALUE(kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
DAIS_VALUE(kHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE);
DAIS_VALUE(PoolProps{}.allocation_type, CU_MEM_ALLOCATION_TYPE_PINNED);
DAIS_VALUE(PoolProps{}.handle_types, CU_MEM_HANDLE_TYPE_NONE);
DAIS_VALUE(PoolLocation{}.type, CU_MEM_LOCATION_TYPE_DEVICE);
DAIS_VALUE(GraphUpdateInfo{}.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);

static_assert(sizeof(PoolProps) == sizeof(CUmemPoolProps));
static_assert(offsetof(PoolProps, handle_types) == offsetof(CUmemPoolProps, handleTypes));
static_assert(offsetof(PoolProps, location) == offsetof(CUmemPoolProps, location));
static_assert(offsetof(PoolLocation, id) == offsetof(CUmemLocation, id));
static_assert(offsetof(PoolProps, security_attributes) ==
              offsetof(CUmemPoolProps, win32SecurityAttributes));
static_assert(offsetof(PoolProps, max_bytes) == offsetof(CUmemPoolProps, maxSize));
static_assert(offsetof(PoolProps, usage) == offsetof(CUmemPoolProps, usage));
static_assert(sizeof(GraphUpdateInfo) == sizeof(CUgraphExecUpdateResultInfo));
static_assert(offsetof(GraphUpdateInfo, error_node) ==
              offsetof(CUgraphExecUpdateResultInfo, errorNode));
static_assert(offsetof(GraphUpdateInfo, error_from_node) ==
              offsetof(CUgraphExecUpdateResultInfo, errorFromNode));
static_assert(sizeof(DriverUuid) == sizeof(CUuuid));

DAIS_CALL(DriverApi, init, cuInit);
DAIS_CALL(DriverApi, driver_get_version, cuDriverGetVersion);
DAIS_CALL(DriverApi, get_error_name, cuGetErrorName);
DAIS_CALL(DriverApi, get_error_string, cuGetErrorString);
DAIS_CALL(DriverApi, device_get, cuDeviceGet);
DAIS_CALL(DriverApi, device_get_count, cuDeviceGetCount);
DAIS_CALL(DriverApi, device_get_name, cuDeviceGetName);
DAIS_CALL(DriverApi, device_get_uuid, cuDeviceGetUuid_v2);
DAIS_CALL(DriverApi, device_total_mem, cuDeviceTotalMem_v2);
DAIS_CALL(DriverApi, device_get_attribute, cuDeviceGetAttribute);
DAIS_CALL(DriverApi, device_get_pci_bus_id, cuDeviceGetPCIBusId);
DAIS_CALL(DriverApi, device_primary_ctx_retain, cuDevicePrimaryCtxRetain);
DAIS_CALL(DriverApi, device_primary_ctx_release, cuDevicePrimaryCtxRelease_v2);
DAIS_CALL(DriverApi, ctx_set_current, cuCtxSetCurrent);
DAIS_CALL(DriverApi, ctx_get_current, cuCtxGetCurrent);
DAIS_CALL(DriverApi, ctx_synchronize, cuCtxSynchronize);
DAIS_CALL(DriverApi, module_load_data, cuModuleLoadData);
DAIS_CALL(DriverApi, module_unload, cuModuleUnload);
DAIS_CALL(DriverApi, module_get_function, cuModuleGetFunction);
DAIS_CALL(DriverApi, func_get_attribute, cuFuncGetAttribute);
DAIS_CALL(DriverApi, func_set_attribute, cuFuncSetAttribute);
DAIS_CALL(DriverApi, occupancy_max_active_blocks_per_multiprocessor,
          cuOccupancyMaxActiveBlocksPerMultiprocessor);
DAIS_CALL(DriverApi, mem_get_info, cuMemGetInfo_v2);
DAIS_CALL(DriverApi, mem_alloc, cuMemAlloc_v2);
DAIS_CALL(DriverApi, mem_free, cuMemFree_v2);
DAIS_CALL(DriverApi, mem_host_alloc, cuMemHostAlloc);
DAIS_CALL(DriverApi, mem_free_host, cuMemFreeHost);
DAIS_CALL(DriverApi, mem_pool_create, cuMemPoolCreate);
DAIS_CALL(DriverApi, mem_pool_destroy, cuMemPoolDestroy);
DAIS_CALL(DriverApi, mem_pool_trim_to, cuMemPoolTrimTo);
DAIS_CALL(DriverApi, mem_pool_set_attribute, cuMemPoolSetAttribute);
DAIS_CALL(DriverApi, mem_pool_get_attribute, cuMemPoolGetAttribute);
DAIS_CALL(DriverApi, mem_alloc_from_pool_async, cuMemAllocFromPoolAsync);
DAIS_CALL(DriverApi, mem_free_async, cuMemFreeAsync);
DAIS_CALL(DriverApi, memcpy_htod_async, cuMemcpyHtoDAsync_v2);
DAIS_CALL(DriverApi, memcpy_dtoh_async, cuMemcpyDtoHAsync_v2);
DAIS_CALL(DriverApi, memcpy_dtod_async, cuMemcpyDtoDAsync_v2);
DAIS_CALL(DriverApi, memset_d8_async, cuMemsetD8Async);
DAIS_CALL(DriverApi, memset_d32_async, cuMemsetD32Async);
DAIS_CALL(DriverApi, stream_create, cuStreamCreate);
DAIS_CALL(DriverApi, stream_destroy, cuStreamDestroy_v2);
DAIS_CALL(DriverApi, stream_synchronize, cuStreamSynchronize);
DAIS_CALL(DriverApi, stream_query, cuStreamQuery);
DAIS_CALL(DriverApi, stream_wait_event, cuStreamWaitEvent);
DAIS_CALL(DriverApi, stream_begin_capture, cuStreamBeginCapture_v2);
DAIS_CALL(DriverApi, stream_end_capture, cuStreamEndCapture);
DAIS_CALL(DriverApi, event_create, cuEventCreate);
DAIS_CALL(DriverApi, event_destroy, cuEventDestroy_v2);
DAIS_CALL(DriverApi, event_record, cuEventRecord);
DAIS_CALL(DriverApi, event_query, cuEventQuery);
DAIS_CALL(DriverApi, event_synchronize, cuEventSynchronize);
DAIS_CALL(DriverApi, event_elapsed_time, cuEventElapsedTime);
DAIS_CALL(DriverApi, launch_kernel, cuLaunchKernel);
DAIS_CALL(DriverApi, graph_instantiate, cuGraphInstantiateWithFlags);
DAIS_CALL(DriverApi, graph_launch, cuGraphLaunch);
DAIS_CALL(DriverApi, graph_exec_update, cuGraphExecUpdate_v2);
DAIS_CALL(DriverApi, graph_exec_destroy, cuGraphExecDestroy);
DAIS_CALL(DriverApi, graph_destroy, cuGraphDestroy);
#endif

#ifdef DAIS_HAS_CUBLASLT
DAIS_VALUE(BlasStatus::success, CUBLAS_STATUS_SUCCESS);
DAIS_VALUE(BlasStatus::not_initialized, CUBLAS_STATUS_NOT_INITIALIZED);
DAIS_VALUE(BlasStatus::alloc_failed, CUBLAS_STATUS_ALLOC_FAILED);
DAIS_VALUE(BlasStatus::invalid_value, CUBLAS_STATUS_INVALID_VALUE);
DAIS_VALUE(BlasStatus::arch_mismatch, CUBLAS_STATUS_ARCH_MISMATCH);
DAIS_VALUE(BlasStatus::mapping_error, CUBLAS_STATUS_MAPPING_ERROR);
DAIS_VALUE(BlasStatus::execution_failed, CUBLAS_STATUS_EXECUTION_FAILED);
DAIS_VALUE(BlasStatus::internal_error, CUBLAS_STATUS_INTERNAL_ERROR);
DAIS_VALUE(BlasStatus::not_supported, CUBLAS_STATUS_NOT_SUPPORTED);
DAIS_VALUE(BlasStatus::license_error, CUBLAS_STATUS_LICENSE_ERROR);
DAIS_VALUE(DataKind::f32, CUDA_R_32F);
DAIS_VALUE(DataKind::f16, CUDA_R_16F);
DAIS_VALUE(DataKind::i8, CUDA_R_8I);
DAIS_VALUE(DataKind::i32, CUDA_R_32I);
DAIS_VALUE(DataKind::bf16, CUDA_R_16BF);
DAIS_VALUE(DataKind::f8e4m3, CUDA_R_8F_E4M3);
DAIS_VALUE(DataKind::f8e5m2, CUDA_R_8F_E5M2);
DAIS_VALUE(BlasCompute::f32, CUBLAS_COMPUTE_32F);
DAIS_VALUE(BlasCompute::f32_fast_bf16, CUBLAS_COMPUTE_32F_FAST_16BF);
DAIS_VALUE(BlasCompute::f32_fast_tf32, CUBLAS_COMPUTE_32F_FAST_TF32);
DAIS_VALUE(BlasCompute::i32, CUBLAS_COMPUTE_32I);
DAIS_VALUE(MatmulAttribute::transpose_a, CUBLASLT_MATMUL_DESC_TRANSA);
DAIS_VALUE(MatmulAttribute::transpose_b, CUBLASLT_MATMUL_DESC_TRANSB);
DAIS_VALUE(MatmulAttribute::epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
DAIS_VALUE(MatmulAttribute::bias_pointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
DAIS_VALUE(MatmulAttribute::a_scale_pointer, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
DAIS_VALUE(MatmulAttribute::b_scale_pointer, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
DAIS_VALUE(MatmulAttribute::bias_type, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
DAIS_VALUE(BlasEpilogue::none, CUBLASLT_EPILOGUE_DEFAULT);
DAIS_VALUE(BlasEpilogue::relu, CUBLASLT_EPILOGUE_RELU);
DAIS_VALUE(BlasEpilogue::bias, CUBLASLT_EPILOGUE_BIAS);
DAIS_VALUE(BlasEpilogue::relu_bias, CUBLASLT_EPILOGUE_RELU_BIAS);
DAIS_VALUE(BlasEpilogue::gelu, CUBLASLT_EPILOGUE_GELU);
DAIS_VALUE(BlasEpilogue::gelu_bias, CUBLASLT_EPILOGUE_GELU_BIAS);
DAIS_VALUE(LayoutAttribute::batch_count, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
DAIS_VALUE(LayoutAttribute::batch_stride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
DAIS_VALUE(PreferenceAttribute::most_workspace_bytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
DAIS_VALUE(PreferenceAttribute::alignment_a, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
DAIS_VALUE(PreferenceAttribute::alignment_b, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
DAIS_VALUE(PreferenceAttribute::alignment_c, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
DAIS_VALUE(PreferenceAttribute::alignment_d, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(sizeof(MatmulAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(MatmulChoice) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(MatmulChoice, workspace_bytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(MatmulChoice, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(offsetof(MatmulChoice, waves) ==
              offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));

DAIS_CALL(CublasLtApi, create, cublasLtCreate);
DAIS_CALL(CublasLtApi, destroy, cublasLtDestroy);
DAIS_CALL(CublasLtApi, get_version, cublasLtGetVersion);
DAIS_CALL(CublasLtApi, get_status_name, cublasLtGetStatusName);
DAIS_CALL(CublasLtApi, desc_create, cublasLtMatmulDescCreate);
DAIS_CALL(CublasLtApi, desc_destroy, cublasLtMatmulDescDestroy);
DAIS_CALL(CublasLtApi, desc_set, cublasLtMatmulDescSetAttribute);
DAIS_CALL(CublasLtApi, layout_create, cublasLtMatrixLayoutCreate);
DAIS_CALL(CublasLtApi, layout_destroy, cublasLtMatrixLayoutDestroy);
DAIS_CALL(CublasLtApi, layout_set, cublasLtMatrixLayoutSetAttribute);
DAIS_CALL(CublasLtApi, preference_create, cublasLtMatmulPreferenceCreate);
DAIS_CALL(CublasLtApi, preference_destroy, cublasLtMatmulPreferenceDestroy);
DAIS_CALL(CublasLtApi, preference_set, cublasLtMatmulPreferenceSetAttribute);
DAIS_CALL(CublasLtApi, heuristic, cublasLtMatmulAlgoGetHeuristic);
DAIS_CALL(CublasLtApi, matmul, cublasLtMatmul);
#endif

#ifdef DAIS_HAS_CUDNN
DAIS_VALUE(DnnStatus::success, CUDNN_STATUS_SUCCESS);
DAIS_VALUE(DnnStatus::not_initialized, CUDNN_STATUS_NOT_INITIALIZED);
DAIS_VALUE(DnnStatus::bad_param, CUDNN_STATUS_BAD_PARAM);
DAIS_VALUE(DnnStatus::bad_param_not_finalized, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
DAIS_VALUE(DnnStatus::bad_param_attribute_type, CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
DAIS_VALUE(DnnStatus::not_supported, CUDNN_STATUS_NOT_SUPPORTED);
DAIS_VALUE(DnnStatus::internal_error, CUDNN_STATUS_INTERNAL_ERROR);
DAIS_VALUE(DnnStatus::execution_failed, CUDNN_STATUS_EXECUTION_FAILED);
DAIS_VALUE(DnnKind::pointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
DAIS_VALUE(DnnKind::convolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
DAIS_VALUE(DnnKind::engine, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
DAIS_VALUE(DnnKind::engine_config, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
DAIS_VALUE(DnnKind::engine_heuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
DAIS_VALUE(DnnKind::execution_plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
DAIS_VALUE(DnnKind::convolution_forward, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
DAIS_VALUE(DnnKind::operation_pointwise, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
DAIS_VALUE(DnnKind::operation_graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
DAIS_VALUE(DnnKind::variant_pack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
DAIS_VALUE(DnnKind::tensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
DAIS_VALUE(DnnAttribute::pointwise_mode, CUDNN_ATTR_POINTWISE_MODE);
DAIS_VALUE(DnnAttribute::pointwise_precision, CUDNN_ATTR_POINTWISE_MATH_PREC);
DAIS_VALUE(DnnAttribute::convolution_precision, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
DAIS_VALUE(DnnAttribute::convolution_mode, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
DAIS_VALUE(DnnAttribute::convolution_dilations, CUDNN_ATTR_CONVOLUTION_DILATIONS);
DAIS_VALUE(DnnAttribute::convolution_strides, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
DAIS_VALUE(DnnAttribute::convolution_post_paddings, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
DAIS_VALUE(DnnAttribute::convolution_pre_paddings, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
DAIS_VALUE(DnnAttribute::convolution_spatial_axes, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
DAIS_VALUE(DnnAttribute::heuristics_mode, CUDNN_ATTR_ENGINEHEUR_MODE);
DAIS_VALUE(DnnAttribute::heuristics_graph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
DAIS_VALUE(DnnAttribute::heuristics_results, CUDNN_ATTR_ENGINEHEUR_RESULTS);
DAIS_VALUE(DnnAttribute::config_engine, CUDNN_ATTR_ENGINECFG_ENGINE);
DAIS_VALUE(DnnAttribute::plan_handle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
DAIS_VALUE(DnnAttribute::plan_config, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
DAIS_VALUE(DnnAttribute::plan_workspace_bytes, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
DAIS_VALUE(DnnAttribute::forward_alpha, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
DAIS_VALUE(DnnAttribute::forward_beta, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
DAIS_VALUE(DnnAttribute::forward_convolution, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
DAIS_VALUE(DnnAttribute::forward_w, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
DAIS_VALUE(DnnAttribute::forward_x, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
DAIS_VALUE(DnnAttribute::forward_y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
DAIS_VALUE(DnnAttribute::operation_pointwise, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
DAIS_VALUE(DnnAttribute::operation_pointwise_x, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
DAIS_VALUE(DnnAttribute::operation_pointwise_b, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
DAIS_VALUE(DnnAttribute::operation_pointwise_y, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
DAIS_VALUE(DnnAttribute::graph_handle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
DAIS_VALUE(DnnAttribute::graph_operations, CUDNN_ATTR_OPERATIONGRAPH_OPS);
DAIS_VALUE(DnnAttribute::tensor_alignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
DAIS_VALUE(DnnAttribute::tensor_type, CUDNN_ATTR_TENSOR_DATA_TYPE);
DAIS_VALUE(DnnAttribute::tensor_sizes, CUDNN_ATTR_TENSOR_DIMENSIONS);
DAIS_VALUE(DnnAttribute::tensor_strides, CUDNN_ATTR_TENSOR_STRIDES);
DAIS_VALUE(DnnAttribute::tensor_id, CUDNN_ATTR_TENSOR_UNIQUE_ID);
DAIS_VALUE(DnnAttribute::tensor_virtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
DAIS_VALUE(DnnAttribute::pack_ids, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
DAIS_VALUE(DnnAttribute::pack_pointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
DAIS_VALUE(DnnAttribute::pack_workspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
DAIS_VALUE(DnnAttribute::engine_numerical_notes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
DAIS_VALUE(DnnType::handle, CUDNN_TYPE_HANDLE);
DAIS_VALUE(DnnType::data_type, CUDNN_TYPE_DATA_TYPE);
DAIS_VALUE(DnnType::boolean, CUDNN_TYPE_BOOLEAN);
DAIS_VALUE(DnnType::int64, CUDNN_TYPE_INT64);
DAIS_VALUE(DnnType::f32, CUDNN_TYPE_FLOAT);
DAIS_VALUE(DnnType::pointer, CUDNN_TYPE_VOID_PTR);
DAIS_VALUE(DnnType::convolution_mode, CUDNN_TYPE_CONVOLUTION_MODE);
DAIS_VALUE(DnnType::heuristics_mode, CUDNN_TYPE_HEUR_MODE);
DAIS_VALUE(DnnType::numerical_note, CUDNN_TYPE_NUMERICAL_NOTE);
DAIS_VALUE(DnnType::pointwise_mode, CUDNN_TYPE_POINTWISE_MODE);
DAIS_VALUE(DnnType::descriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR);
DAIS_VALUE(DnnData::f32, CUDNN_DATA_FLOAT);
DAIS_VALUE(DnnData::f16, CUDNN_DATA_HALF);
DAIS_VALUE(DnnData::bf16, CUDNN_DATA_BFLOAT16);
DAIS_VALUE(DnnPointwise::add, CUDNN_POINTWISE_ADD);
DAIS_VALUE(DnnPointwise::relu, CUDNN_POINTWISE_RELU_FWD);
DAIS_VALUE(DnnPointwise::tanh, CUDNN_POINTWISE_TANH_FWD);
DAIS_VALUE(DnnPointwise::sigmoid, CUDNN_POINTWISE_SIGMOID_FWD);
DAIS_VALUE(DnnConvolution::correlation, CUDNN_CROSS_CORRELATION);
DAIS_VALUE(DnnHeuristics::instant, CUDNN_HEUR_MODE_INSTANT);
DAIS_VALUE(DnnHeuristics::fallback, CUDNN_HEUR_MODE_FALLBACK);
DAIS_VALUE(DnnHeuristics::best, CUDNN_HEUR_MODE_A);
DAIS_VALUE(DnnNote::tensor_core, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
DAIS_VALUE(DnnNote::down_converts, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);

DAIS_CALL(CudnnApi, get_version, cudnnGetVersion);
DAIS_CALL(CudnnApi, get_cudart_version, cudnnGetCudartVersion);
DAIS_CALL(CudnnApi, get_error_string, cudnnGetErrorString);
DAIS_CALL(CudnnApi, create, cudnnCreate);
DAIS_CALL(CudnnApi, destroy, cudnnDestroy);
DAIS_CALL(CudnnApi, set_stream, cudnnSetStream);
DAIS_CALL(CudnnApi, descriptor_create, cudnnBackendCreateDescriptor);
DAIS_CALL(CudnnApi, descriptor_destroy, cudnnBackendDestroyDescriptor);
DAIS_CALL(CudnnApi, finalize, cudnnBackendFinalize);
DAIS_CALL(CudnnApi, set_attribute, cudnnBackendSetAttribute);
DAIS_CALL(CudnnApi, get_attribute, cudnnBackendGetAttribute);
DAIS_CALL(CudnnApi, execute, cudnnBackendExecute);
#endif

#ifdef DAIS_HAS_CUPTI
DAIS_VALUE(CuptiResult::success, CUPTI_SUCCESS);
DAIS_VALUE(CuptiResult::max_limit_reached, CUPTI_ERROR_MAX_LIMIT_REACHED);
DAIS_VALUE(CuptiResult::insufficient_privileges, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
DAIS_VALUE(CuptiKind::copy, CUPTI_ACTIVITY_KIND_MEMCPY);
DAIS_VALUE(CuptiKind::fill, CUPTI_ACTIVITY_KIND_MEMSET);
DAIS_VALUE(CuptiKind::concurrent_kernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
DAIS_VALUE(CuptiKind::synchronization, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
// The newest records; older ones of the same kind begin alike.
static_assert(kCuptiKernel.start == offsetof(CUpti_ActivityKernel10, start));
static_assert(kCuptiKernel.end == offsetof(CUpti_ActivityKernel10, end));
static_assert(kCuptiKernel.stream == offsetof(CUpti_ActivityKernel10, streamId));
static_assert(kCuptiKernel.device == offsetof(CUpti_ActivityKernel10, deviceId));
static_assert(kCuptiMemory.device == offsetof(CUpti_ActivityMemcpy6, deviceId));
static_assert(kCuptiMemory.device == offsetof(CUpti_ActivityMemset4, deviceId));
static_assert(kCuptiKernelName == offsetof(CUpti_ActivityKernel10, name));
static_assert(kCuptiMemory.start == offsetof(CUpti_ActivityMemcpy6, start));
static_assert(kCuptiMemory.end == offsetof(CUpti_ActivityMemcpy6, end));
static_assert(kCuptiMemory.stream == offsetof(CUpti_ActivityMemcpy6, streamId));
static_assert(kCuptiCopyKind == offsetof(CUpti_ActivityMemcpy6, copyKind));
static_assert(kCuptiBytes == offsetof(CUpti_ActivityMemcpy6, bytes));
static_assert(kCuptiMemory.start == offsetof(CUpti_ActivityMemset4, start));
static_assert(kCuptiMemory.end == offsetof(CUpti_ActivityMemset4, end));
static_assert(kCuptiMemory.stream == offsetof(CUpti_ActivityMemset4, streamId));
static_assert(kCuptiBytes == offsetof(CUpti_ActivityMemset4, bytes));
static_assert(kCuptiSynchronization.start == offsetof(CUpti_ActivitySynchronization2, start));
static_assert(kCuptiSynchronization.end == offsetof(CUpti_ActivitySynchronization2, end));
static_assert(kCuptiSynchronization.stream == offsetof(CUpti_ActivitySynchronization2, streamId));

DAIS_CALL(CuptiApi, get_version, cuptiGetVersion);
DAIS_CALL(CuptiApi, get_result_string, cuptiGetResultString);
DAIS_CALL(CuptiApi, get_timestamp, cuptiGetTimestamp);
DAIS_CALL(CuptiApi, enable, cuptiActivityEnable);
DAIS_CALL(CuptiApi, disable, cuptiActivityDisable);
DAIS_CALL(CuptiApi, register_callbacks, cuptiActivityRegisterCallbacks);
DAIS_CALL(CuptiApi, flush_all, cuptiActivityFlushAll);
DAIS_CALL(CuptiApi, next_record, cuptiActivityGetNextRecord);
static_assert(SameCall<CuptiRequest, CUpti_BuffersCallbackRequestFunc>::value);
static_assert(SameCall<CuptiComplete, CUpti_BuffersCallbackCompleteFunc>::value);
#endif

#ifdef DAIS_HAS_NVRTC
DAIS_VALUE(NvrtcResult::success, NVRTC_SUCCESS);
DAIS_VALUE(NvrtcResult::out_of_memory, NVRTC_ERROR_OUT_OF_MEMORY);
DAIS_VALUE(NvrtcResult::program_creation_failure, NVRTC_ERROR_PROGRAM_CREATION_FAILURE);
DAIS_VALUE(NvrtcResult::invalid_input, NVRTC_ERROR_INVALID_INPUT);
DAIS_VALUE(NvrtcResult::invalid_program, NVRTC_ERROR_INVALID_PROGRAM);
DAIS_VALUE(NvrtcResult::invalid_option, NVRTC_ERROR_INVALID_OPTION);
DAIS_VALUE(NvrtcResult::compilation, NVRTC_ERROR_COMPILATION);
DAIS_VALUE(NvrtcResult::builtin_operation_failure, NVRTC_ERROR_BUILTIN_OPERATION_FAILURE);
DAIS_VALUE(NvrtcResult::internal_error, NVRTC_ERROR_INTERNAL_ERROR);
DAIS_CALL(NvrtcApi, get_error_string, nvrtcGetErrorString);
DAIS_CALL(NvrtcApi, version, nvrtcVersion);
DAIS_CALL(NvrtcApi, get_num_supported_archs, nvrtcGetNumSupportedArchs);
DAIS_CALL(NvrtcApi, get_supported_archs, nvrtcGetSupportedArchs);
DAIS_CALL(NvrtcApi, create_program, nvrtcCreateProgram);
DAIS_CALL(NvrtcApi, destroy_program, nvrtcDestroyProgram);
DAIS_CALL(NvrtcApi, compile_program, nvrtcCompileProgram);
DAIS_CALL(NvrtcApi, get_cubin_size, nvrtcGetCUBINSize);
DAIS_CALL(NvrtcApi, get_cubin, nvrtcGetCUBIN);
DAIS_CALL(NvrtcApi, get_ptx_size, nvrtcGetPTXSize);
DAIS_CALL(NvrtcApi, get_ptx, nvrtcGetPTX);
DAIS_CALL(NvrtcApi, get_program_log_size, nvrtcGetProgramLogSize);
DAIS_CALL(NvrtcApi, get_program_log, nvrtcGetProgramLog);
#endif

std::string headers_missing() {
  std::string out;
#ifndef DAIS_HAS_CUDA
  out += " cuda.h";
#endif
#ifndef DAIS_HAS_CUBLASLT
  out += " cublasLt.h";
#endif
#ifndef DAIS_HAS_CUDNN
  out += " cudnn.h";
#endif
#ifndef DAIS_HAS_CUPTI
  out += " cupti.h";
#endif
#ifndef DAIS_HAS_NVRTC
  out += " nvrtc.h";
#endif
  return out;
}

TEST(Toolkit, HeadersSayTheSame) {
  if (!headers_missing().empty()) GTEST_SKIP() << "not compared, missing:" << headers_missing();
}

// A library that is there has everything; one that is not says so.
void expect_complete(const LibraryReport& report) {
  EXPECT_EQ(report.problem.find(" lacks "), std::string::npos) << report.problem;
}

TEST(Toolkit, LibrariesHaveEveryEntryPoint) {
  expect_complete(load_nvrtc(0).report);
  expect_complete(load_cublaslt(0).report);
  expect_complete(load_cudnn(0).report);
  expect_complete(load_cupti(0).report);
}

// The toolkit brings a driver to link against: it does nothing, but it has all names.
TEST(Toolkit, DriverHasEveryEntryPoint) {
  namespace fs = std::filesystem;
  const fs::path stub = "/usr/local/cuda/lib64/stubs/libcuda.so";
  if (!fs::exists(stub)) GTEST_SKIP() << "no " << stub;
  std::string folder = (fs::temp_directory_path() / "dais_stub_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  fs::create_symlink(stub, fs::path(folder) / "libcuda.so.1");
  setenv("DAIS_CUDA_LIBRARIES", folder.c_str(), 1);
  const LibraryReport report = load_driver().report;
  unsetenv("DAIS_CUDA_LIBRARIES");
  fs::remove_all(folder);
  expect_complete(report);
  EXPECT_FALSE(report.file.empty()) << report.problem;
}

}  // namespace
}  // namespace dais::cuda
