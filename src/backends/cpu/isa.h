#pragma once

#include <optional>

#include "base/isa.h"

namespace dais::cpu {

/// The highest level this process may use: what the processor and the operating system offer by
/// feature bits, capped by the environment variable DAIS_MAX_ISA. Found once, at the first call,
/// which also asks the kernel for the AMX tile state; call it before starting threads that use
/// tiles. Throws Error(invalid_argument) when DAIS_MAX_ISA names no level.
Isa isa();

/// The cap that DAIS_MAX_ISA sets, if any. Throws as isa() does.
std::optional<Isa> isa_cap();

/// The highest level of the machine itself, without the cap.
Isa machine_isa();

}  // namespace dais::cpu
