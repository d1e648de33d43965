#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <random>
#include <set>

#include "base/error.h"
#include "jobs/request.h"

namespace dais::jobs {
namespace {

constexpr int most_jobs = 100'000;  // of one file

class Reader {
 public:
  Reader(const std::string& name, const std::string& folder) : name_(name), folder_(folder) {}

  JobRequest read(const YAML::Node& root);
  void check_finished() const;
  void problem(const YAML::Node& at, const std::string& text) {
    const std::string line =
        at.Mark().line >= 0 ? "line " + std::to_string(at.Mark().line + 1) + ": " : "";
    problems_.push_back(line + text);
  }
  /// Runs `read`, which throws Error or a YAML exception, and keeps the problem.
  void attempt(const YAML::Node& at, const std::string& key, const std::function<void()>& read);

 private:
  void read_command(JobRequest& request, const YAML::Node& value);
  void read_environment(JobRequest& request, const YAML::Node& value);
  void read_amounts(JobRequest& request, const std::string& key, const YAML::Node& value);
  void read_search(JobRequest& request, const YAML::Node& value);
  void read_key(JobRequest& request, const std::string& key, const YAML::Node& value);

  std::string name_, folder_;
  std::vector<std::string> problems_;
};

const std::vector<std::string>& known_keys() {
  static const std::vector<std::string> keys = {
      "name",        "project",    "priority",  "command",  "shell",  "folder",      "snapshot",
      "environment", "tasks",      "gpus",      "cpus",     "memory", "preemptible", "grace",
      "min_run",     "time_limit", "retries",   "backoff",  "after",  "notify",      "array",
      "sweep",       "search",     "min_tasks", "artefacts"};
  return keys;
}

void Reader::attempt(const YAML::Node& at, const std::string& key,
                     const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    problem(at, error.problem() + (error.remedy().empty() ? "" : ". " + error.remedy()));
  } catch (const YAML::Exception&) {
    problem(at, key + ": not a value of the right kind");
  }
}

void Reader::read_command(JobRequest& request, const YAML::Node& value) {
  if (!value.IsSequence()) {
    problem(value, "command: give a list of the program and its arguments, or use shell:");
    return;
  }
  request.command = value.as<std::vector<std::string>>();
}

void Reader::read_environment(JobRequest& request, const YAML::Node& value) {
  if (!value.IsMap()) {
    problem(value, "environment: give NAME: value pairs");
    return;
  }
  for (const auto& entry : value) {
    request.environment[entry.first.as<std::string>()] = entry.second.as<std::string>();
  }
}

void Reader::read_search(JobRequest& request, const YAML::Node& value) {
  static const std::vector<std::string> keys = {"samples", "seed", "first", "factor", "better"};
  if (!value.IsMap()) return problem(value, "search: give " + keys[0] + ": N and the like");
  for (const auto& entry : value) {
    const auto key = entry.first.as<std::string>();
    if (std::ranges::count(keys, key)) continue;
    const std::string near = nearest(key, keys);
    problem(entry.first, "search: unknown key '" + key + "'" +
                             (near.empty() ? "" : "; did you mean '" + near + "'?"));
  }
  if (value["first"]) request.search.first_step = value["first"].as<int64_t>();
  if (value["factor"]) request.search.factor = value["factor"].as<double>();
  if (!value["better"]) return;
  const auto better = value["better"].as<std::string>();
  if (better != "smaller" && better != "larger") {
    problem(value["better"], "search: better: use smaller or larger");
  }
  request.search.larger = better == "larger";
}

void Reader::read_amounts(JobRequest& request, const std::string& key, const YAML::Node& value) {
  std::string text;
  if (key == "gpus" && value.IsSequence()) {
    for (const auto& part : value) text += part.as<std::string>() + ",";
    if (!text.empty()) text.pop_back();
  } else {
    text = value.as<std::string>();
  }
  if (key == "gpus") parse_gpus(text, key, request);
  if (key == "cpus") request.cpu_milli = parse_milli(text, key);
  if (key == "memory") request.memory_mib = parse_mib(text, key);
  if (key == "grace") request.grace_s = parse_seconds(text, key);
  if (key == "min_run") request.min_run_s = parse_seconds(text, key);
  if (key == "time_limit") request.time_limit_s = parse_seconds(text, key);
  if (key == "backoff") request.backoff_s = parse_seconds(text, key);
}

void Reader::read_key(JobRequest& request, const std::string& key, const YAML::Node& value) {
  static constexpr std::array amounts = {"gpus",    "cpus",       "memory", "grace",
                                         "min_run", "time_limit", "backoff"};
  if (std::ranges::count(amounts, key)) return read_amounts(request, key, value);
  if (key == "command") return read_command(request, value);
  if (key == "environment") return read_environment(request, value);
  if (key == "name") request.name = value.as<std::string>();
  if (key == "project") request.project = value.as<std::string>();
  if (key == "priority") request.priority = value.as<int>();
  if (key == "shell") request.command = {"/bin/sh", "-c", value.as<std::string>()};
  if (key == "folder") {
    const std::filesystem::path base = folder_;
    request.folder = (base / value.as<std::string>()).lexically_normal().string();
  }
  if (key == "snapshot") request.snapshot = value.as<bool>();
  if (key == "tasks") request.tasks = value.as<int>();
  if (key == "min_tasks") request.min_tasks = value.as<int>();
  if (key == "preemptible") request.preemptible = value.as<bool>();
  if (key == "retries") request.retries = value.as<int>();
  if (key == "after") request.after = value.as<std::vector<int64_t>>();
  if (key == "search") return read_search(request, value);
  if (key == "artefacts") {
    request.artefacts = value.IsSequence() ? value.as<std::vector<std::string>>()
                                           : std::vector<std::string>{value.as<std::string>()};
  }
  if (key == "notify") request.notify = value.as<std::vector<std::string>>();
}

JobRequest Reader::read(const YAML::Node& root) {
  JobRequest request;
  request.name = std::filesystem::path(name_).stem().string();
  request.folder = folder_;
  if (!root.IsMap()) {
    problem(root, "a job file holds `key: value` pairs");
    return request;
  }
  std::set<std::string> seen;
  for (const auto& entry : root) {
    const auto key = entry.first.as<std::string>();
    if (!std::ranges::count(known_keys(), key)) {
      const std::string near = nearest(key, known_keys());
      problem(entry.first,
              "unknown key '" + key + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
      continue;
    }
    if (!seen.insert(key).second) problem(entry.first, "'" + key + "' is given twice");
    attempt(entry.second, key, [&] { read_key(request, key, entry.second); });
  }
  if (seen.count("command") && seen.count("shell")) {
    problem(root, "give either command or shell");
  }
  for (const std::string& text : problems_of(request)) problem(YAML::Node(), text);
  return request;
}

void Reader::check_finished() const {
  if (problems_.empty()) return;
  std::string all =
      problems_.size() == 1 ? problems_[0] : std::to_string(problems_.size()) + " problems: ";
  for (size_t i = 0; problems_.size() > 1 && i < problems_.size(); ++i) {
    all += (i ? "; " : "") + problems_[i];
  }
  throw Error(Code::invalid_argument, all, name_);
}

// `{lr}` in an argument stands for the value of the parameter lr.
std::string with_value(const std::string& text, const std::string& name, const std::string& value) {
  std::string out = text;
  const std::string mark = "{" + name + "}";
  for (size_t at = out.find(mark); at != std::string::npos; at = out.find(mark, at)) {
    out.replace(at, mark.size(), value);
    at += value.size();
  }
  return out;
}

JobRequest with_parameter(const JobRequest& request, const std::string& name,
                          const std::string& value) {
  JobRequest out = request;
  for (std::string& word : out.command) word = with_value(word, name, value);
  for (auto& [variable, text] : out.environment) text = with_value(text, name, value);
  out.environment["DAIS_PARAM_" + name] = value;
  out.name += "," + name + "=" + value;
  return out;
}

std::vector<JobRequest> expand_array(Reader& reader, const YAML::Node& array,
                                     const JobRequest& request) {
  std::vector<JobRequest> out;
  reader.attempt(array, "array", [&] {
    const int count = array.as<int>();
    if (count < 1 || count > most_jobs) {
      return reader.problem(array, "array: use 1 to " + std::to_string(most_jobs));
    }
    for (int i = 0; i < count; ++i) {
      JobRequest one = request;
      const std::string index = std::to_string(i);
      for (std::string& word : one.command) word = with_value(word, "index", index);
      one.environment["DAIS_ARRAY_INDEX"] = index;
      one.environment["DAIS_ARRAY_SIZE"] = std::to_string(count);
      one.name += "[" + index + "]";
      out.push_back(std::move(one));
    }
  });
  return out;
}

constexpr int most_digits = 6;  // of a number drawn from a range

// One value of a parameter: one of a list, or of `{from: A, to: B}`, evenly or by its logarithm.
std::string drawn(const YAML::Node& values, std::mt19937_64& random) {
  if (values.IsSequence()) {
    const auto all = values.as<std::vector<std::string>>();
    if (all.empty()) throw Error(Code::invalid_argument, "sweep: an empty list");
    return all[random() % all.size()];
  }
  const auto from = values["from"].as<double>(), to = values["to"].as<double>();
  const bool by_logarithm = values["log"] && values["log"].as<bool>();
  if (!(from < to) || (by_logarithm && from <= 0)) {
    throw Error(Code::invalid_argument, "sweep: a range needs from below to", {},
                "With log: true both above 0");
  }
  const double part = static_cast<double>(random() >> 11) * 0x1p-53;
  const double value = by_logarithm ? from * std::pow(to / from, part) : from + (to - from) * part;
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), "%.*g", most_digits, value);
  return text.data();
}

// So many jobs with values drawn at random; the same seed gives the same.
std::vector<JobRequest> draw_sweep(Reader& reader, const YAML::Node& sweep,
                                   const YAML::Node& search, const JobRequest& request) {
  std::vector<JobRequest> out;
  reader.attempt(sweep, "sweep", [&] {
    const int samples = search["samples"].as<int>();
    if (!sweep.IsMap()) return reader.problem(sweep, "sweep: give parameter: values pairs");
    if (samples < 1 || samples > most_jobs) {
      return reader.problem(search, "search: samples: use 1 to " + std::to_string(most_jobs));
    }
    std::mt19937_64 random(search["seed"] ? search["seed"].as<uint64_t>() : 0);
    for (int i = 0; i < samples; ++i) {
      JobRequest one = request;
      for (const auto& entry : sweep) {
        one = with_parameter(one, entry.first.as<std::string>(), drawn(entry.second, random));
      }
      out.push_back(std::move(one));
    }
  });
  return out;
}

// Every combination of the values of a sweep's parameters, the last one varying fastest.
std::vector<JobRequest> expand_sweep(Reader& reader, const YAML::Node& sweep,
                                     const JobRequest& request) {
  std::vector<JobRequest> out = {request};
  reader.attempt(sweep, "sweep", [&] {
    if (!sweep.IsMap()) return reader.problem(sweep, "sweep: give parameter: [values] pairs");
    for (const auto& entry : sweep) {
      const auto name = entry.first.as<std::string>();
      const auto values = entry.second.as<std::vector<std::string>>();
      if (values.empty() || values.size() * out.size() > most_jobs) {
        return reader.problem(entry.second, "sweep: 1 to " + std::to_string(most_jobs) +
                                                " combinations are possible");
      }
      std::vector<JobRequest> next;
      for (const JobRequest& one : out) {
        for (const std::string& value : values) next.push_back(with_parameter(one, name, value));
      }
      out = std::move(next);
    }
  });
  return out;
}

}  // namespace

std::vector<JobRequest> read_job_file(const std::string& text, const std::string& name,
                                      const std::string& folder) {
  if (text.size() > 4 << 20) {
    throw Error(Code::invalid_argument, "the job file is larger than 4 MiB", name);
  }
  YAML::Node root;
  try {
    root = YAML::Load(text);
  } catch (const YAML::Exception& problem) {
    throw Error(Code::invalid_argument, std::string("not YAML: ") + problem.what(), name);
  }
  Reader reader(name, folder);
  const JobRequest request = reader.read(root);
  reader.check_finished();
  std::vector<JobRequest> out = {request};
  if (root["array"]) out = expand_array(reader, root["array"], request);
  if (root["sweep"] && root["array"]) {
    reader.problem(root["sweep"], "give either array or sweep");
  } else if (root["sweep"] && root["search"] && root["search"]["samples"]) {
    out = draw_sweep(reader, root["sweep"], root["search"], request);
  } else if (root["search"] && !root["sweep"]) {
    reader.problem(root["search"], "search: it needs a sweep");
  } else if (root["sweep"]) {
    out = expand_sweep(reader, root["sweep"], request);
  }
  reader.check_finished();
  return out;
}

}  // namespace dais::jobs
