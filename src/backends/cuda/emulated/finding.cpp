#include "backends/cuda/emulated/finding.h"

namespace dais::cuda::emulated {

std::string_view finding_name(FindingKind kind) {
  switch (kind) {
    case FindingKind::out_of_bounds: return "out-of-bounds access";
    case FindingKind::misaligned: return "misaligned access";
    case FindingKind::uninitialised: return "read of uninitialised shared memory";
    case FindingKind::race: return "shared-memory race";
    case FindingKind::divergent_barrier: return "divergent barrier";
    case FindingKind::deadlock: return "deadlock";
    case FindingKind::trap: return "trap";
    case FindingKind::red_zone: return "write beside an allocation";
  }
  return "finding";
}

bool stops_block(FindingKind kind) {
  return kind != FindingKind::uninitialised && kind != FindingKind::race;
}

std::string Finding::text() const {
  std::string out;
  if (!file.empty()) out = file + ":" + std::to_string(line) + ": ";
  out += std::string(finding_name(kind)) + " in kernel '" + kernel + "': " + detail;
  if (count > 1) out += " (" + std::to_string(count) + " times)";
  return out;
}

}  // namespace dais::cuda::emulated
