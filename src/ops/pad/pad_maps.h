#pragma once

#include <string>

#include "ops/pad/mapped_copy.h"

namespace dais {

/// How many elements of an axis are left when negative pads have removed some. `pads`: those of all
/// axes, first the starts, then the ends.
int64_t kept_elements(const Shape& from, std::span<const int64_t> pads, size_t axis);

/// Which element of the data each one of the result shows. Modes other than "constant" need an
/// element that is kept on every axis.
IndexMaps pad_maps(const std::string& mode, const Shape& from, const Shape& to,
                   std::span<const int64_t> pads);

}  // namespace dais
