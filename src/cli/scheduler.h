#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/command.h"

/// What the verbs that talk to the scheduler share.
namespace dais::cli {

/// Where the scheduler is and how its answers are shown.
struct Scheduler {
  std::string endpoint;  ///< empty: the socket of this user's data folder
  std::string token;
  std::string authority;  ///< PEM file that vouches for an https endpoint; empty: the system's
  bool json = false;

  /// Adds --endpoint, --token, --ca and --json to a verb. DAIS_ENDPOINT, DAIS_TOKEN and DAIS_CA
  /// stand in for the first three.
  void add_options(CLI::App& command);
  /// The answer's body. Throws the error that the scheduler gave, or unavailable when it is not
  /// there.
  nlohmann::ordered_json call(const std::string& method, const std::string& target,
                              const std::string& body = {}) const;
  /// The same for an answer that is text and comes in pieces.
  void stream(const std::string& target) const;
  /// Likewise, to wherever `piece` puts it; false from it ends the call.
  void fetch(const std::string& target, const std::function<bool(std::string_view)>& piece) const;
};

void add_submit(Program& program);
void add_job_verbs(Program& program);
void add_artefacts(Program& program);
void add_top(Program& program);
void add_project(Program& program);
void add_report(Program& program);

/// A line for each of the scheduler's jobs.
void print_jobs(const nlohmann::ordered_json& jobs);

/// "3 s", "12 min", "5 h", "2 d".
std::string rough_time(double seconds);

}  // namespace dais::cli
