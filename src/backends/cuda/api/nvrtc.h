#pragma once

#include <cstddef>

#include "backends/cuda/api/library.h"

namespace dais::cuda {

enum class NvrtcResult : int {
  success = 0,
  out_of_memory = 1,
  program_creation_failure = 2,
  invalid_input = 3,
  invalid_program = 4,
  invalid_option = 5,
  compilation = 6,
  builtin_operation_failure = 7,
  internal_error = 11,
};

using NvrtcProgram = struct NvrtcProgramTag*;

/// Entry points of the run-time compiler (libnvrtc). Programs are independent; each is used by one
/// thread at a time.
struct NvrtcApi {
  const char* (*get_error_string)(NvrtcResult result);
  NvrtcResult (*version)(int* major, int* minor);
  NvrtcResult (*get_num_supported_archs)(int* count);
  NvrtcResult (*get_supported_archs)(int* archs);  ///< 75, 80, ...
  NvrtcResult (*create_program)(NvrtcProgram* program, const char* source, const char* name,
                                int header_count, const char* const* headers,
                                const char* const* header_names);
  NvrtcResult (*destroy_program)(NvrtcProgram* program);
  NvrtcResult (*compile_program)(NvrtcProgram program, int option_count,
                                 const char* const* options);
  NvrtcResult (*get_cubin_size)(NvrtcProgram program, size_t* bytes);
  NvrtcResult (*get_cubin)(NvrtcProgram program, char* cubin);
  NvrtcResult (*get_ptx_size)(NvrtcProgram program, size_t* bytes);
  NvrtcResult (*get_ptx)(NvrtcProgram program, char* ptx);
  /// The size counts the closing zero.
  NvrtcResult (*get_program_log_size)(NvrtcProgram program, size_t* bytes);
  NvrtcResult (*get_program_log)(NvrtcProgram program, char* log);
};

/// Opens the newest NVRTC that `driver_version` (13000; 0: any) can run programs of.
Loaded<NvrtcApi> load_nvrtc(int driver_version);

}  // namespace dais::cuda
