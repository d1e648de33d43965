#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/api/driver.h"

namespace dais::cuda {

enum class BlasStatus : int {
  success = 0,
  not_initialized = 1,
  alloc_failed = 3,
  invalid_value = 7,
  arch_mismatch = 8,
  mapping_error = 11,
  execution_failed = 13,
  internal_error = 14,
  not_supported = 15,
  license_error = 16,
};

/// Element types, numbered as all libraries of the toolkit do.
enum class DataKind : int {
  f32 = 0,
  f16 = 2,
  i8 = 3,
  i32 = 10,
  bf16 = 14,
  f8e4m3 = 28,
  f8e5m2 = 29
};

enum class BlasCompute : int { f32 = 68, f32_fast_bf16 = 75, f32_fast_tf32 = 77, i32 = 72 };

enum class MatmulAttribute : int {
  transpose_a = 3,  ///< int32_t 0 or 1
  transpose_b = 4,
  epilogue = 7,          ///< BlasEpilogue
  bias_pointer = 8,      ///< a device address; one value for each row of D
  a_scale_pointer = 17,  ///< a device address: a float by which A of an 8-bit float type counts
  b_scale_pointer = 18,
  bias_type = 26,  ///< DataKind
};

enum class BlasEpilogue : uint32_t {
  none = 1,
  relu = 2,
  bias = 4,
  relu_bias = 6,
  gelu = 32,
  gelu_bias = 36,
};

enum class LayoutAttribute : int {
  batch_count = 5,   ///< int32_t
  batch_stride = 6,  ///< int64_t elements
};

enum class PreferenceAttribute : int {
  most_workspace_bytes = 1,  ///< size_t
  alignment_a = 5,  ///< uint32_t bytes that the address is a multiple of; 256 when not said
  alignment_b = 6,
  alignment_c = 7,
  alignment_d = 8,
};

struct MatmulAlgorithm {
  uint64_t data[8];
};

struct MatmulChoice {
  MatmulAlgorithm algorithm;
  size_t workspace_bytes;
  BlasStatus state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(MatmulAlgorithm) == 64 && sizeof(MatmulChoice) == 96 &&
              offsetof(MatmulChoice, state) == 72);

using BlasHandle = struct BlasHandleTag*;
using MatmulDesc = struct MatmulDescTag*;
using MatrixLayout = struct MatrixLayoutTag*;
using MatmulPreference = struct MatmulPreferenceTag*;

/// Entry points of libcublasLt. Matrices lie column by column. A handle belongs to the context that
/// was current when it was made; any thread may use it.
struct CublasLtApi {
  BlasStatus (*create)(BlasHandle* handle);
  BlasStatus (*destroy)(BlasHandle handle);
  size_t (*get_version)();
  const char* (*get_status_name)(BlasStatus status);
  BlasStatus (*desc_create)(MatmulDesc* desc, BlasCompute compute, DataKind scale);
  BlasStatus (*desc_destroy)(MatmulDesc desc);
  BlasStatus (*desc_set)(MatmulDesc desc, MatmulAttribute attribute, const void* value,
                         size_t bytes);
  BlasStatus (*layout_create)(MatrixLayout* layout, DataKind type, uint64_t rows, uint64_t columns,
                              int64_t leading);
  BlasStatus (*layout_destroy)(MatrixLayout layout);
  BlasStatus (*layout_set)(MatrixLayout layout, LayoutAttribute attribute, const void* value,
                           size_t bytes);
  BlasStatus (*preference_create)(MatmulPreference* preference);
  BlasStatus (*preference_destroy)(MatmulPreference preference);
  BlasStatus (*preference_set)(MatmulPreference preference, PreferenceAttribute attribute,
                               const void* value, size_t bytes);
  BlasStatus (*heuristic)(BlasHandle handle, MatmulDesc desc, MatrixLayout a, MatrixLayout b,
                          MatrixLayout c, MatrixLayout d, MatmulPreference preference, int wanted,
                          MatmulChoice* found, int* count);
  /// d = epilogue(alpha * a * b + beta * c); alpha and beta are host addresses of the scale type.
  BlasStatus (*matmul)(BlasHandle handle, MatmulDesc desc, const void* alpha, const void* a,
                       MatrixLayout a_layout, const void* b, MatrixLayout b_layout,
                       const void* beta, const void* c, MatrixLayout c_layout, void* d,
                       MatrixLayout d_layout, const MatmulAlgorithm* algorithm, void* workspace,
                       size_t workspace_bytes, DriverStream stream);
};

/// Opens the cuBLASLt of 12 or 13 that fits the driver (13000; 0: any).
Loaded<CublasLtApi> load_cublaslt(int driver_version);

}  // namespace dais::cuda
