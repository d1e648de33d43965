#pragma once

#include <string_view>

namespace dais::jobs {

/// The description of the HTTP interface, OpenAPI 3.1 in JSON: every path, what it takes and what
/// it answers. Requests are tested against it, so that the two cannot part.
std::string_view openapi_text();

}  // namespace dais::jobs
