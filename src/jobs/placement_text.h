#pragma once

#include <string>
#include <string_view>

#include "jobs/model.h"

namespace dais::jobs {

/// The stored form of a placement: "host:device:task:milli" for each slot, separated by blanks.
std::string placement_text(const Placement& placement);
/// Throws invalid_argument. Empty text is an empty placement.
Placement placement_from_text(std::string_view text);

/// A time for people: "90.0 s", "12.3 min", with so many digits behind the point below two hours.
std::string duration_text(double seconds, int digits);

}  // namespace dais::jobs
