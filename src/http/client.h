#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "http/message.h"

namespace dais::http {

/// One request, one answer, over a connection of its own. `endpoint` is `unix:/path`,
/// `http://host:port` or `https://host:port`; `target` the path with its query, percent-encoded.
/// Over https the server must be vouched for by `authority`, a PEM file, or by one of the system's.
/// With `piece`, the body is handed over as it comes and not kept; false from it ends the call.
/// Throws `invalid_argument` for a malformed endpoint, `unavailable` when nobody answers.
Response request(const std::string& endpoint, std::string_view method, const std::string& target,
                 const std::string& body = {}, const Headers& headers = {},
                 const std::function<bool(std::string_view)>& piece = nullptr,
                 const std::string& authority = {});

/// For one part of a path or query.
std::string percent_encode(std::string_view text);
/// Throws invalid_argument for a broken escape.
std::string percent_decode(std::string_view text);

}  // namespace dais::http
