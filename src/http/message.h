#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace dais::http {

/// Header names are in lower case.
using Headers = std::map<std::string, std::string>;

struct Request {
  std::string method;
  std::string path;                          ///< without the query, percent-decoded
  std::map<std::string, std::string> query;  ///< percent-decoded
  Headers headers;
  std::string body;
  /// The user behind a Unix socket, as the kernel tells it; nothing over TCP.
  std::optional<unsigned> peer_user;
};

struct Response {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  /// For answers without a known length: fills in the next piece, false at the end. It may wait,
  /// for a second at most, and give an empty piece, so that a peer that left is noticed.
  std::function<bool(std::string& piece)> stream = nullptr;
};

}  // namespace dais::http
