#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/api/driver.h"

namespace dais::cuda {

// cuDNN's graph interface: descriptors of tensors and operations, each made, given attributes and
// finalised; engines that can run a graph of them are asked for, and a plan of one is executed.

enum class DnnStatus : int {
  success = 0,
  not_initialized = 1001,
  bad_param = 2000,
  bad_param_not_finalized = 2004,
  bad_param_attribute_type = 2010,
  not_supported = 3000,
  internal_error = 4000,
  execution_failed = 5000,
};

enum class DnnKind : int {
  pointwise = 0,
  convolution = 1,
  engine = 2,
  engine_config = 3,
  engine_heuristics = 4,
  execution_plan = 5,
  convolution_forward = 10,
  operation_pointwise = 13,
  operation_graph = 15,
  variant_pack = 16,
  tensor = 17,
};

enum class DnnAttribute : int {
  pointwise_mode = 0,
  pointwise_precision = 1,
  convolution_precision = 100,
  convolution_mode = 101,
  convolution_dilations = 102,
  convolution_strides = 103,
  convolution_post_paddings = 104,
  convolution_pre_paddings = 105,
  convolution_spatial_axes = 106,
  heuristics_mode = 200,
  heuristics_graph = 201,
  heuristics_results = 202,
  config_engine = 300,
  plan_handle = 400,
  plan_config = 401,
  plan_workspace_bytes = 402,
  forward_alpha = 700,
  forward_beta = 701,
  forward_convolution = 702,
  forward_w = 703,
  forward_x = 704,
  forward_y = 705,
  operation_pointwise = 750,
  operation_pointwise_x = 751,
  operation_pointwise_b = 752,
  operation_pointwise_y = 753,
  graph_handle = 800,
  graph_operations = 801,
  tensor_alignment = 900,
  tensor_type = 901,
  tensor_sizes = 902,
  tensor_strides = 903,
  tensor_id = 906,
  tensor_virtual = 907,
  pack_ids = 1000,
  pack_pointers = 1001,
  pack_workspace = 1003,
  engine_numerical_notes = 1303,
};

enum class DnnType : int {
  handle = 0,
  data_type = 1,
  boolean = 2,
  int64 = 3,
  f32 = 4,
  pointer = 6,
  convolution_mode = 7,
  heuristics_mode = 8,
  numerical_note = 11,
  pointwise_mode = 14,
  descriptor = 15,
};

/// Element types as cuDNN numbers them.
enum class DnnData : int { f32 = 0, f16 = 2, bf16 = 9 };
enum class DnnPointwise : int { add = 0, relu = 100, tanh = 101, sigmoid = 102 };
enum class DnnConvolution : int { correlation = 1 };
enum class DnnHeuristics : int { instant = 0, fallback = 2, best = 3 };
/// What an engine does to numbers.
enum class DnnNote : int { tensor_core = 0, down_converts = 1 };

using DnnHandle = struct DnnHandleTag*;
using DnnDescriptor = void*;

/// Entry points of libcudnn. A handle belongs to the context that was current when it was made and
/// is used by one thread at a time; descriptors that are finalised may be shared.
struct CudnnApi {
  size_t (*get_version)();
  size_t (*get_cudart_version)();
  const char* (*get_error_string)(DnnStatus status);
  DnnStatus (*create)(DnnHandle* handle);
  DnnStatus (*destroy)(DnnHandle handle);
  DnnStatus (*set_stream)(DnnHandle handle, DriverStream stream);
  DnnStatus (*descriptor_create)(DnnKind kind, DnnDescriptor* descriptor);
  DnnStatus (*descriptor_destroy)(DnnDescriptor descriptor);
  DnnStatus (*finalize)(DnnDescriptor descriptor);
  DnnStatus (*set_attribute)(DnnDescriptor descriptor, DnnAttribute attribute, DnnType type,
                             int64_t count, const void* elements);
  /// `elements` of descriptors hold made ones, which are filled in.
  DnnStatus (*get_attribute)(DnnDescriptor descriptor, DnnAttribute attribute, DnnType type,
                             int64_t wanted, int64_t* count, void* elements);
  DnnStatus (*execute)(DnnHandle handle, DnnDescriptor plan, DnnDescriptor pack);
};

/// Opens cuDNN 9 when it was built for a CUDA that the driver speaks (13000; 0: any).
Loaded<CudnnApi> load_cudnn(int driver_version);

}  // namespace dais::cuda
