#include "cli/scheduler.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "http/client.h"
#include "jobs/machine.h"

namespace dais::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string endpoint_of(const Scheduler& scheduler) {
  if (!scheduler.endpoint.empty()) return scheduler.endpoint;
  const std::string own = jobs::socket_path(jobs::default_data_folder());
  const std::string shared = jobs::socket_path(jobs::shared_data_folder);
  return "unix:" +
         (access(own.c_str(), F_OK) != 0 && access(shared.c_str(), F_OK) == 0 ? shared : own);
}

http::Headers headers_of(const Scheduler& scheduler) {
  if (scheduler.token.empty()) return {};
  return {{"authorization", "Bearer " + scheduler.token}};
}

Code code_of(const std::string& name) {
  for (const Code code : {Code::invalid_argument, Code::invalid_model, Code::unsupported,
                          Code::not_found, Code::exhausted, Code::unavailable, Code::cancelled}) {
    if (code_name(code) == name) return code;
  }
  return Code::internal;
}

[[noreturn]] void raise(const http::Response& response) {
  const Json body = Json::parse(response.body, nullptr, false);
  if (!body.is_object() || !body.contains("error")) {
    throw Error(Code::unavailable, "the scheduler answered " + std::to_string(response.status),
                response.body);
  }
  const Json& error = body["error"];
  throw Error(code_of(error.value("code", "")), error.value("message", ""),
              error.value("where", ""), error.value("remedy", ""));
}

http::Response reach(const Scheduler& scheduler, const std::string& method,
                     const std::string& target, const std::string& body,
                     const std::function<bool(std::string_view)>& piece) {
  const std::string endpoint = endpoint_of(scheduler);
  try {
    return http::request(endpoint, method, target, body, headers_of(scheduler), piece,
                         scheduler.authority);
  } catch (const Error& error) {
    // Over TLS the error tells more: a certificate that nobody vouches for, for one.
    if (error.code() != Code::unavailable || endpoint.starts_with("https:")) throw;
    const bool socket = endpoint.starts_with("unix:");
    if (socket && access(endpoint.c_str() + 5, W_OK) != 0 && errno == EACCES) {
      throw Error(Code::unavailable, "this user may not reach the scheduler", endpoint,
                  "One that root runs lets everybody in; ask who runs this one");
    }
    throw Error(Code::unavailable, "no scheduler answers", endpoint, "Start it with `dais up`");
  }
}

}  // namespace

void Scheduler::add_options(CLI::App& command) {
  command
      .add_option("--endpoint", endpoint,
                  "unix:/path, http://host:port or https://host:port of the scheduler")
      ->envname("DAIS_ENDPOINT");
  command
      .add_option("--ca", authority,
                  "Over https: the certificate that vouches for it, if the system's do not")
      ->envname("DAIS_CA");
  command.add_option("--token", token, "Who asks, over http")->envname("DAIS_TOKEN");
  command.add_flag("--json", json, "Print JSON");
}

Json Scheduler::call(const std::string& method, const std::string& target,
                     const std::string& body) const {
  const http::Response response = reach(*this, method, target, body, nullptr);
  if (response.status >= 300) raise(response);
  return Json::parse(response.body);
}

void Scheduler::stream(const std::string& target) const {
  fetch(target, [](std::string_view piece) {
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    return std::fflush(stdout) == 0;
  });
}

void Scheduler::fetch(const std::string& target,
                      const std::function<bool(std::string_view)>& piece) const {
  const http::Response response = reach(*this, "GET", target, "", piece);
  if (response.status >= 300) raise(response);
}

std::string rough_time(double seconds) {
  char text[32];
  if (seconds < 120) {
    std::snprintf(text, sizeof text, "%.0f s", seconds);
  } else if (seconds < 7200) {
    std::snprintf(text, sizeof text, "%.0f min", seconds / 60);
  } else if (seconds < 172'800) {
    std::snprintf(text, sizeof text, "%.0f h", seconds / 3600);
  } else {
    std::snprintf(text, sizeof text, "%.0f d", seconds / 86'400);
  }
  return text;
}

}  // namespace dais::cli
