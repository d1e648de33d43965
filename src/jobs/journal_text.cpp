#include "jobs/journal_text.h"

#include <cmath>

#include "base/error.h"
#include "jobs/placement_text.h"

namespace dais::jobs {
namespace {

using Json = nlohmann::json;

std::string text(double at_s, Json event) {
  event["t"] = at_s;
  return event.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json amounts(const Resources& amount) {
  return Json::array({amount.gpu_milli, amount.cpu_milli, amount.memory_mib});
}

Resources amounts_from(const Json& json) { return {json.at(0), json.at(1), json.at(2)}; }

Json start_json(const Start& start) {
  return {{"job", start.job},
          {"place", placement_text(start.placement)},
          {"standing", static_cast<int>(start.standing)}};
}

// The numbers of a policy by name, for both directions.
template <typename Visit>
void visit_numbers(Policy& policy, Visit&& visit) {
  visit("preempt_gain", policy.preempt_gain);
  visit("min_run_s", policy.min_run_s);
  visit("grow_after_s", policy.grow_after_s);
  visit("las_threshold_gpu_s", policy.las_threshold_gpu_s);
  visit("tenure_wait_s", policy.tenure_wait_s);
  visit("tenure_full_wait_s", policy.tenure_full_wait_s);
  visit("tenure_share", policy.tenure_share);
  visit("fairness_power", policy.fairness_power);
  visit("fairness_span", policy.fairness_span);
  visit("half_life_s", policy.half_life_s);
  visit("max_starts", policy.max_starts);
  visit("max_looks", policy.max_looks);
  visit("max_victims", policy.max_victims);
  visit("max_spared", policy.max_spared);
  visit("max_wasted", policy.max_wasted);
}

}  // namespace

std::string policy_line(const Policy& policy) {
  Json numbers;
  Policy copy = policy;
  visit_numbers(copy, [&numbers](const char* name, auto& value) { numbers[name] = value; });
  const Json json = {
      {"journal", 1}, {"policy", ordering_name(policy.ordering)}, {"numbers", numbers}};
  return json.dump();
}

Policy policy_from(const Json& first) {
  if (first.at("journal") != 1) throw Error(Code::unsupported, "a journal of another version");
  Policy policy = policy_named(first.at("policy").get<std::string>());
  const Json& numbers = first.at("numbers");
  // Journals of older versions lack the newer ones.
  visit_numbers(policy, [&numbers](const char* name, auto& value) {
    if (numbers.contains(name)) numbers.at(name).get_to(value);
  });
  return policy;
}

std::string host_line(double at_s, const Host& host) {
  return text(at_s, {{"host",
                      {{"name", host.name},
                       {"rack", host.rack},
                       {"devices", host.devices},
                       {"island", host.island_size},
                       {"cpu_milli", host.cpu_milli},
                       {"memory_mib", host.memory_mib}}}});
}

std::string host_open_line(double at_s, HostId id, bool open) {
  return text(at_s, {{"host_open", open}, {"id", id}});
}

std::string usage_line(double at_s, ProjectId id, double gpu_s) {
  return text(at_s, {{"usage", gpu_s}, {"id", id}});
}

std::string device_open_line(double at_s, HostId id, int device, bool open) {
  return text(at_s, {{"device_open", open}, {"id", id}, {"device", device}});
}

Host host_from(const Json& json) {
  Host host;
  json.at("name").get_to(host.name);
  json.at("rack").get_to(host.rack);
  json.at("devices").get_to(host.devices);
  json.at("island").get_to(host.island_size);
  json.at("cpu_milli").get_to(host.cpu_milli);
  json.at("memory_mib").get_to(host.memory_mib);
  return host;
}

std::string project_line(double at_s, ProjectId id, const Project& project) {
  return text(at_s, {{"id", id},
                     {"project",
                      {{"name", project.name},
                       {"parent", project.parent},
                       {"quota", amounts(project.quota)},
                       {"limit", amounts(project.limit)},
                       {"weight", project.weight}}}});
}

Project project_from(const Json& json) {
  Project project;
  json.at("name").get_to(project.name);
  json.at("parent").get_to(project.parent);
  project.quota = amounts_from(json.at("quota"));
  project.limit = amounts_from(json.at("limit"));
  json.at("weight").get_to(project.weight);
  return project;
}

std::string submit_line(double at_s, const JobSpec& spec) {
  Json job = {{"name", spec.name},
              {"project", spec.project},
              {"priority", spec.priority},
              {"tasks", spec.shape.tasks},
              {"task", amounts(spec.shape.task)},
              {"preemptible", spec.shape.preemptible},
              {"time_limit_s", spec.time_limit_s},
              {"min_run_s", spec.min_run_s},
              {"fewest_tasks", spec.fewest_tasks},
              {"most_tasks", spec.most_tasks}};
  if (spec.shape.mixed()) job["parts"] = spec.shape.parts;
  return text(at_s, {{"submit", std::move(job)}});
}

JobSpec spec_from(const Json& json) {
  JobSpec spec;
  json.at("name").get_to(spec.name);
  json.at("project").get_to(spec.project);
  json.at("priority").get_to(spec.priority);
  json.at("tasks").get_to(spec.shape.tasks);
  spec.shape.task = amounts_from(json.at("task"));
  json.at("preemptible").get_to(spec.shape.preemptible);
  if (json.contains("parts")) json.at("parts").get_to(spec.shape.parts);
  json.at("time_limit_s").get_to(spec.time_limit_s);
  json.at("min_run_s").get_to(spec.min_run_s);
  spec.fewest_tasks = json.value("fewest_tasks", 0);
  spec.most_tasks = json.value("most_tasks", 0);
  return spec;
}

std::string start_line(double at_s, const Start& start) {
  return text(at_s, {{"start", start_json(start)}});
}

Start start_from(const Json& json) {
  const int standing = json.at("standing");
  if (standing < 0 || standing > static_cast<int>(Standing::tenured)) {
    throw Error(Code::invalid_argument, "no such standing");
  }
  return {json.at("job"), placement_from_text(json.at("place").get<std::string>()),
          static_cast<Standing>(standing)};
}

std::string job_line(double at_s, const char* event, JobId job) {
  return text(at_s, {{event, job}});
}

std::string decision_line(double at_s, const char* event, const Decision& decision) {
  Json json = Json::object();
  for (const JobId id : decision.promote) json["promote"].push_back(id);
  for (const Preemption& one : decision.preempt) {
    json["preempt"].push_back(Json::array({one.victim, one.beneficiary}));
  }
  for (const Start& one : decision.start) json["start"].push_back(start_json(one));
  if (decision.more) json["more"] = true;
  return text(at_s, {{event, json}});
}

Decision decision_from(const Json& json) {
  Decision decision;
  decision.promote = json.value("promote", std::vector<JobId>());
  for (const Json& one : json.value("preempt", Json::array())) {
    decision.preempt.push_back({one.at(0), one.at(1)});
  }
  for (const Json& one : json.value("start", Json::array())) {
    decision.start.push_back(start_from(one));
  }
  decision.more = json.value("more", false);
  return decision;
}

double time_of(const Json& event) {
  const double at_s = event.at("t");
  if (!std::isfinite(at_s) || at_s < 0 || at_s > 1e12) {
    throw Error(Code::invalid_argument, "not a time");
  }
  return at_s;
}

std::string decision_text(const Decision& decision) {
  std::string out = "it starts";
  for (const Start& one : decision.start) {
    out += " " + std::to_string(one.job) + " at " + placement_text(one.placement);
  }
  if (decision.start.empty()) out += " nothing";
  for (const Preemption& one : decision.preempt) {
    out += ", stops " + std::to_string(one.victim) + " for " + std::to_string(one.beneficiary);
  }
  for (const JobId id : decision.promote) out += ", makes " + std::to_string(id) + " tenured";
  return out;
}

}  // namespace dais::jobs
