#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/api/library.h"

namespace dais::cuda {

enum class CuptiResult : int { success = 0, max_limit_reached = 12, insufficient_privileges = 35 };

/// Kinds of records that are read here.
enum class CuptiKind : int {
  copy = 1,
  fill = 2,
  concurrent_kernel = 10,
  synchronization = 38,
};

/// What a record of one kind holds, by bytes from its start: the same in CUPTI 12 and 13. Times are
/// nanoseconds of the clock that get_timestamp tells.
struct CuptiLayout {
  size_t start = 0, end = 0, stream = 0;
  size_t device = 0;  ///< uint32_t; 0: not told
};
inline constexpr CuptiLayout kCuptiKernel{16, 24, 48, 40}, kCuptiMemory{16, 24, 40, 32},
    kCuptiSynchronization{8, 16, 32};
inline constexpr size_t kCuptiKernelName = 104;  ///< const char*
inline constexpr size_t kCuptiCopyKind = 4;      ///< one byte: 1 to the device, 2 from it
inline constexpr size_t kCuptiBytes = 8;         ///< uint64_t, of copies and fills

using CuptiRequest = void (*)(uint8_t** buffer, size_t* bytes, size_t* most_records);
using CuptiComplete = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t bytes,
                               size_t valid_bytes);

/// Entry points of libcupti's activity interface. One consumer per process; the callbacks come from
/// threads of the library's own.
struct CuptiApi {
  CuptiResult (*get_version)(uint32_t* version);
  CuptiResult (*get_result_string)(CuptiResult result, const char** text);
  CuptiResult (*get_timestamp)(uint64_t* nanoseconds);
  CuptiResult (*enable)(CuptiKind kind);
  CuptiResult (*disable)(CuptiKind kind);
  CuptiResult (*register_callbacks)(CuptiRequest request, CuptiComplete complete);
  CuptiResult (*flush_all)(uint32_t flags);
  /// `record` begins as null and is moved on; max_limit_reached behind the last one.
  CuptiResult (*next_record)(uint8_t* buffer, size_t valid_bytes, void** record);
};

/// Opens the CUPTI of 12 or 13 that fits the driver (13000; 0: any).
Loaded<CuptiApi> load_cupti(int driver_version);

}  // namespace dais::cuda
