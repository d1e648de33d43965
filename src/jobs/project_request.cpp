#include <nlohmann/json.hpp>

#include "base/error.h"
#include "jobs/controller.h"
#include "jobs/json_text.h"

namespace dais::jobs {
namespace {

using Json = nlohmann::ordered_json;

Json amounts(const Resources& amount, const Resources& ungoverned) {
  Json json = Json::object();
  if (amount.gpu_milli != ungoverned.gpu_milli) json["gpu_milli"] = amount.gpu_milli;
  if (amount.cpu_milli != ungoverned.cpu_milli) json["cpu_milli"] = amount.cpu_milli;
  if (amount.memory_mib != ungoverned.memory_mib) json["memory_mib"] = amount.memory_mib;
  return json;
}

void read_amounts(const Json& json, Resources& amount) {
  amount.gpu_milli = json.value("gpu_milli", amount.gpu_milli);
  amount.cpu_milli = json.value("cpu_milli", amount.cpu_milli);
  amount.memory_mib = json.value("memory_mib", amount.memory_mib);
  if (amount.gpu_milli < 0 || amount.cpu_milli < 0 || amount.memory_mib < 0) {
    throw Error(Code::invalid_argument, "an amount is negative", "project");
  }
}

}  // namespace

std::string to_json(const ProjectRequest& project) {
  const ProjectRequest standard;
  Json json;
  json["name"] = project.name;
  json["parent"] = project.parent;
  json["quota"] = amounts(project.quota, standard.quota);
  json["limit"] = amounts(project.limit, standard.limit);
  json["weight"] = project.weight;
  json["members"] = project.members;
  json["viewers"] = project.viewers;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

ProjectRequest project_from_json(const std::string& text) {
  ProjectRequest project;
  try {
    const Json json = parse_json(text, "PROJECT");
    json.at("name").get_to(project.name);
    project.parent = json.value("parent", "");
    if (json.contains("quota")) read_amounts(json.at("quota"), project.quota);
    if (json.contains("limit")) read_amounts(json.at("limit"), project.limit);
    project.weight = json.value("weight", 1.0);
    project.members = json.value("members", std::vector<std::string>());
    project.viewers = json.value("viewers", std::vector<std::string>());
  } catch (const Json::exception& problem) {
    throw Error(Code::invalid_argument, std::string("not a project: ") + problem.what());
  }
  if (project.name.empty() || project.name.size() > 128 || !(project.weight > 0) ||
      project.weight > 1e6) {
    throw Error(Code::invalid_argument, "a project needs a name and a weight above 0",
                project.name);
  }
  return project;
}

}  // namespace dais::jobs
