#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "backends/cuda/emulated/text/emulated_abi.h"

namespace dais::cuda::emulated {

/// What the emulated device finds wrong in a kernel.
enum class FindingKind {
  out_of_bounds,      ///< an address in no allocation, or freed
  misaligned,         ///< an access that the hardware refuses
  uninitialised,      ///< shared memory read before the block wrote it
  race,               ///< two threads at one place of shared memory, one writing, unordered
  divergent_barrier,  ///< threads of a block at different barriers, or gone before one
  deadlock,           ///< nobody can go on
  trap,               ///< the kernel stopped itself
  red_zone,           ///< a kernel without checks wrote beside an allocation
};

/// "out-of-bounds access"
std::string_view finding_name(FindingKind kind);
/// Whether the block that it is found in cannot go on.
bool stops_block(FindingKind kind);

/// One fault at one place of one kernel.
struct Finding {
  FindingKind kind;
  std::string kernel;
  std::string file = {};  ///< as given to the compiler; empty when unknown
  int line = 0;
  std::string detail = {};  ///< of the first time: address, threads, the other side of a race
  uint64_t count = 1;       ///< how often in the launch

  /// "reduce.cu:12: shared-memory race in kernel 'sum': …"
  std::string text() const;
};

/// The same before code addresses are turned into lines.
struct RawFinding {
  FindingKind kind;
  const void* site = nullptr;        ///< null: `place` tells
  const void* other_site = nullptr;  ///< the other side of a race
  Place place = {nullptr, 0};
  std::string detail = {};
  uint64_t count = 1;
};

}  // namespace dais::cuda::emulated
