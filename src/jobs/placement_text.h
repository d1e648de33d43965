#pragma once

#include <string>
#include <string_view>

#include "jobs/model.h"

namespace dais::jobs {

/// The stored form of a placement: "host:device:task:milli" for each slot, separated by blanks.
std::string placement_text(const Placement& placement);
/// Throws invalid_argument. Empty text is an empty placement.
Placement placement_from_text(std::string_view text);

}  // namespace dais::jobs
