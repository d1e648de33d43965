#include "jobs/request.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "jobs/artefacts.h"
#include "jobs/json_text.h"

namespace dais::jobs {
namespace {

using Json = nlohmann::ordered_json;

constexpr double longest_backoff_s = 3600;

bool plain_name(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' ||
           c == '/' || c == '=' || c == ',' || c == ' ' || c == '[' || c == ']';
  });
}

bool holds_nul(const std::string& text) { return text.find('\0') != std::string::npos; }

bool variable_name(std::string_view text) {
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) &&
         std::ranges::all_of(
             text, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

class Problems {
 public:
  void check(bool holds, std::string text) {
    if (!holds) list_.push_back(std::move(text));
  }
  std::vector<std::string> take() { return std::move(list_); }

 private:
  std::vector<std::string> list_;
};

void check_words(Problems& problems, const JobRequest& request) {
  problems.check(plain_name(request.name),
                 "name: use letters, digits and -_.,=/ only, at most 128 of them");
  problems.check(plain_name(request.project), "project: not a name");
  problems.check(!request.command.empty() && !request.command[0].empty(),
                 "command: missing; give a program and its arguments");
  size_t bytes = 0;
  for (const auto* words : {&request.command, &request.notify}) {
    for (const std::string& word : *words) {
      bytes += word.size();
      problems.check(!holds_nul(word), "command: an argument holds a zero byte");
    }
  }
  problems.check(bytes <= 128 << 10, "command: longer than 128 KiB");
  problems.check(request.folder.starts_with('/') && !holds_nul(request.folder),
                 "folder: not an absolute path");
  for (const auto& [name, value] : request.environment) {
    problems.check(variable_name(name) && !holds_nul(value),
                   "environment: '" + name + "' is not a name of a variable");
  }
}

void check_parts(Problems& problems, const JobRequest& request) {
  if (request.gpu_parts.empty()) return;
  const size_t count = request.gpu_parts.size();
  problems.check(count > 1 && count <= max_parts,
                 "gpus: list 2 to " + std::to_string(max_parts) + " devices");
  problems.check(request.gpu_mib == 0, "gpus: memory of one device and a list of devices");
  int64_t sum = 0;
  bool sound = true;
  for (const DevicePart& part : request.gpu_parts) {
    const bool memory = part.gpu_mib > 0 && part.gpu_mib <= 10'000'000;
    const bool within = part.gpu_milli > (memory ? -1 : 0) && part.gpu_milli <= whole_gpu;
    problems.check(within && part.gpu_mib >= 0 && (memory || part.gpu_mib == 0),
                   "gpus: each of a list of devices is at most 1, and more than 0");
    sound = sound && within;
    if (within) sum += part.gpu_milli;
  }
  problems.check(!sound || request.gpu_milli == sum, "gpus: gpu_milli is not the sum of its parts");
}

void check_amounts(Problems& problems, const JobRequest& request) {
  const auto within = [&problems](double value, double low, double high, const std::string& what) {
    problems.check(value >= low && value <= high, what);
  };
  within(request.priority, -1000, 1000, "priority: use -1000 to 1000");
  within(request.tasks, 1, 4096, "tasks: use 1 to 4096");
  within(request.min_tasks, 0, request.tasks, "min_tasks: use 1 to the number of tasks");
  within(static_cast<double>(request.gpu_milli), 0, whole_gpu * max_devices,
         "gpus: use 0 to " + std::to_string(max_devices) + " for each task");
  within(static_cast<double>(request.gpu_mib), 0, 1e7, "gpus: use 0 to 10 TiB of one device");
  problems.check(!request.gpu_parts.empty() || request.gpu_milli < whole_gpu ||
                     request.gpu_milli % whole_gpu == 0,
                 "gpus: a part of a GPU is less than one; more than one must be whole");
  within(static_cast<double>(request.cpu_milli), 0, 1e7, "cpus: use 0 to 10000");
  within(static_cast<double>(request.memory_mib), 0, 1e9, "memory: use 0 to 1000 TiB");
  within(request.grace_s, 0, 86'400, "grace: use 0 to 24 hours");
  within(request.min_run_s, 0, 1e8, "min_run: use 0 to 3 years");
  within(request.time_limit_s, 0, 1e8, "time_limit: use 0 to 3 years");
  within(request.retries, 0, 1000, "retries: use 0 to 1000");
  within(request.backoff_s, 0, 86'400, "backoff: use 0 to 24 hours");
  within(static_cast<double>(request.search.first_step), 0, 1e15, "search: first: use 1 or more");
  within(request.search.factor, 1.5, 1000, "search: factor: use 1.5 to 1000");
  problems.check(request.after.size() <= 1000, "after: at most 1000 jobs");
}

}  // namespace

std::vector<std::string> problems_of(const JobRequest& request) {
  Problems problems;
  check_words(problems, request);
  check_amounts(problems, request);
  check_parts(problems, request);
  for (std::string& text : pattern_problems(request.artefacts)) problems.check(false, text);
  return problems.take();
}

Shape shape_of(const JobRequest& request, int tasks) {
  Shape shape{
      tasks, {request.gpu_milli, request.cpu_milli, request.memory_mib}, request.preemptible, {}};
  if (!shares_device(request) || request.gpu_parts.empty()) return shape;
  size_t count = 0;
  for (const DevicePart& part : request.gpu_parts) {
    if (count < max_parts) shape.parts[count++] = static_cast<int16_t>(part.gpu_milli);
  }
  std::sort(shape.parts.begin(), shape.parts.end(), std::greater<>());
  return shape;
}

bool shares_device(const JobRequest& request) {
  if (request.gpu_parts.empty()) return request.gpu_milli % whole_gpu != 0;
  return std::ranges::any_of(request.gpu_parts,
                             [](const DevicePart& part) { return part.gpu_milli < whole_gpu; });
}

double backoff_s(const JobRequest& request, int64_t failures) {
  return std::min(longest_backoff_s, request.backoff_s * std::exp2(static_cast<double>(failures)));
}

std::string to_json(const JobRequest& request) {
  Json json;
  json["name"] = request.name;
  json["project"] = request.project;
  json["user"] = request.user;
  json["priority"] = request.priority;
  json["command"] = request.command;
  json["folder"] = request.folder;
  json["snapshot"] = request.snapshot;
  json["environment"] = request.environment;
  json["tasks"] = request.tasks;
  if (request.min_tasks > 0) json["min_tasks"] = request.min_tasks;
  json["gpu_milli"] = request.gpu_milli;
  if (request.gpu_mib > 0) json["gpu_mib"] = request.gpu_mib;
  for (const DevicePart& part : request.gpu_parts) {
    Json& one = json["gpu_parts"].emplace_back();
    one["gpu_milli"] = part.gpu_milli;
    if (part.gpu_mib > 0) one["gpu_mib"] = part.gpu_mib;
  }
  json["cpu_milli"] = request.cpu_milli;
  json["memory_mib"] = request.memory_mib;
  json["preemptible"] = request.preemptible;
  json["grace_s"] = request.grace_s;
  json["min_run_s"] = request.min_run_s;
  json["time_limit_s"] = request.time_limit_s;
  json["retries"] = request.retries;
  json["backoff_s"] = request.backoff_s;
  json["after"] = request.after;
  if (!request.artefacts.empty()) json["artefacts"] = request.artefacts;
  json["notify"] = request.notify;
  if (request.search.first_step > 0) {
    json["search"] = {{"group", request.search.group},
                      {"first_step", request.search.first_step},
                      {"factor", request.search.factor},
                      {"larger", request.search.larger}};
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

JobRequest request_from_json(std::string_view text) {
  JobRequest request;
  try {
    const Json json = parse_json(text, "JOB");
    json.at("name").get_to(request.name);
    json.at("project").get_to(request.project);
    json.at("user").get_to(request.user);
    set_whole(json.at("priority"), "priority", request.priority);
    json.at("command").get_to(request.command);
    json.at("folder").get_to(request.folder);
    json.at("snapshot").get_to(request.snapshot);
    json.at("environment").get_to(request.environment);
    set_whole(json.at("tasks"), "tasks", request.tasks);
    if (json.contains("min_tasks")) set_whole(json["min_tasks"], "min_tasks", request.min_tasks);
    set_whole(json.at("gpu_milli"), "gpu_milli", request.gpu_milli);
    if (json.contains("gpu_mib")) set_whole(json["gpu_mib"], "gpu_mib", request.gpu_mib);
    for (const Json& part : json.value("gpu_parts", Json::array())) {
      auto& made = request.gpu_parts.emplace_back();
      if (part.contains("gpu_milli")) set_whole(part["gpu_milli"], "gpu_milli", made.gpu_milli);
      if (part.contains("gpu_mib")) set_whole(part["gpu_mib"], "gpu_mib", made.gpu_mib);
    }
    set_whole(json.at("cpu_milli"), "cpu_milli", request.cpu_milli);
    set_whole(json.at("memory_mib"), "memory_mib", request.memory_mib);
    json.at("preemptible").get_to(request.preemptible);
    json.at("grace_s").get_to(request.grace_s);
    json.at("min_run_s").get_to(request.min_run_s);
    json.at("time_limit_s").get_to(request.time_limit_s);
    set_whole(json.at("retries"), "retries", request.retries);
    json.at("backoff_s").get_to(request.backoff_s);
    for (const Json& job : json.at("after")) {
      set_whole(job, "after", request.after.emplace_back());
    }
    if (json.contains("artefacts")) json.at("artefacts").get_to(request.artefacts);
    json.at("notify").get_to(request.notify);
    if (json.contains("search")) {
      const Json& search = json.at("search");
      search.at("group").get_to(request.search.group);
      set_whole(search.at("first_step"), "first_step", request.search.first_step);
      search.at("factor").get_to(request.search.factor);
      search.at("larger").get_to(request.search.larger);
    }
  } catch (const Json::exception& problem) {
    throw Error(Code::invalid_argument, std::string("not a stored job: ") + problem.what());
  }
  return request;
}

}  // namespace dais::jobs
