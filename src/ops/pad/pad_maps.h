#pragma once

#include <optional>
#include <string>

#include "ir/graph.h"
#include "ops/pad/mapped_copy.h"

namespace dais {

/// The pads of a Pad node whose lists are constants, for all axes: first the starts, then the ends.
/// Lists that do not fit give nothing (the reference says why).
std::optional<std::vector<int64_t>> constant_pads(const Node& node, size_t rank);

/// How many elements of an axis are left when negative pads have removed some. `pads`: those of all
/// axes, first the starts, then the ends.
int64_t kept_elements(const Shape& from, std::span<const int64_t> pads, size_t axis);

/// Which element of the data each one of the result shows. Modes other than "constant" need an
/// element that is kept on every axis.
IndexMaps pad_maps(const std::string& mode, const Shape& from, const Shape& to,
                   std::span<const int64_t> pads);

}  // namespace dais
