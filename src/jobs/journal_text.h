#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "jobs/decision.h"

namespace dais::jobs {

/// The lines of a journal. Readers throw a JSON exception or invalid_argument.
std::string policy_line(const Policy& policy);
std::string host_line(double at_s, const Host& host);
std::string host_open_line(double at_s, HostId id, bool open);
std::string usage_line(double at_s, ProjectId id, double gpu_s);
std::string device_open_line(double at_s, HostId id, int device, bool open);
std::string project_line(double at_s, ProjectId id, const Project& project);
std::string submit_line(double at_s, const JobSpec& spec);
std::string start_line(double at_s, const Start& start);
/// An event with no more to it than its name and the job.
std::string job_line(double at_s, const char* event, JobId job);
std::string decision_line(double at_s, const char* event, const Decision& decision);

double time_of(const nlohmann::json& event);
Policy policy_from(const nlohmann::json& first);
Host host_from(const nlohmann::json& json);
Project project_from(const nlohmann::json& json);
JobSpec spec_from(const nlohmann::json& json);
Start start_from(const nlohmann::json& json);
Decision decision_from(const nlohmann::json& json);

/// For people: which jobs it promotes, stops and starts.
std::string decision_text(const Decision& decision);

}  // namespace dais::jobs
