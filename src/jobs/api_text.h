#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "devices/cpu.h"
#include "http/message.h"
#include "jobs/controller.h"

/// What the parts of the HTTP interface share.
namespace dais::jobs {

using Json = nlohmann::ordered_json;

http::Response ok(const Json& json);
/// Throw invalid_argument naming `what`.
int64_t number(std::string_view text, const std::string& what);
int64_t query_number(const http::Request& request, const std::string& name, int64_t otherwise);

/// What the present attempt of a job used so far; values that are missing are null.
Json spent_json(const Controller::Spent& spent);
/// What a job keeps: null when it asked for nothing.
Json artefacts_json(const ArtefactKeeper& keeper, const JobView& view);
/// What the devices tell, likewise.
Json devices_json(const Controller& controller);
Json device_json(const devices::DeviceSample& sample);
Json cpu_json(const devices::CpuSample& sample);

}  // namespace dais::jobs
