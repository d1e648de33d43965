#pragma once

#include <string>
#include <string_view>

namespace dais {

/// The text as it stands inside an element or a quoted attribute of HTML or SVG: what could end
/// either is written as an entity, control characters become spaces.
std::string escape_markup(std::string_view text);

}  // namespace dais
