#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "base/error.h"
#include "cli/scheduler.h"
#include "jobs/request.h"

namespace dais::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Arguments {
  Scheduler scheduler;
  std::string file, key;
  std::vector<std::string> command, environment, notify, artefacts;
  std::vector<int64_t> after;
  std::string name, project, folder, gpus, cpus, memory, grace, time_limit, min_run, backoff;
  std::vector<std::string> sweep;
  std::string better;
  std::optional<double> factor;
  std::optional<int> priority, tasks, min_tasks, retries, array, samples;
  std::optional<int64_t> seed, first;
  bool snapshot = false, not_preemptible = false;
};

std::string text_of(const std::string& path) {
  std::ostringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(Code::not_found, "cannot read the job file", path);
  text << file.rdbuf();
  return text.str();
}

// `lr=0.1,0.01` takes each value; `lr=1e-5..1e-1` is a range, with `:log` drawn by its logarithm.
void add_sweep(Json& sweep, const std::string& text) {
  const size_t equal = text.find('='), range = text.find("..");
  if (equal == std::string::npos || equal == 0 || equal + 1 == text.size()) {
    throw Error(Code::invalid_argument, "--sweep needs NAME=VALUES", text,
                "Such as lr=0.1,0.01 or lr=1e-5..1e-1:log");
  }
  Json& values = sweep[text.substr(0, equal)];
  if (range == std::string::npos) {
    std::istringstream list(text.substr(equal + 1));
    for (std::string value; std::getline(list, value, ',');) values.push_back(value);
    return;
  }
  std::string to = text.substr(range + 2);
  const bool log = to.ends_with(":log");
  if (log) to.resize(to.size() - 4);
  values = {{"from", text.substr(equal + 1, range - equal - 1)}, {"to", to}, {"log", log}};
}

bool has_sweep(const Arguments& a) {
  return !a.sweep.empty() || a.array || a.samples || a.seed || a.first || a.factor ||
         !a.better.empty();
}

// What the flags of a sweep say as a job file, so that one reader expands and checks both.
std::vector<jobs::JobRequest> swept_requests(const Arguments& a) {
  if (!a.file.empty()) {
    throw Error(Code::invalid_argument, "a sweep is given by flags and there is a job file", a.file,
                "Write the sweep into the file");
  }
  Json file;
  file["command"] = a.command;
  file["name"] = !a.name.empty()     ? a.name
                 : a.command.empty() ? std::string("sweep")
                                     : fs::path(a.command[0]).filename().string();
  for (const std::string& one : a.sweep) add_sweep(file["sweep"], one);
  if (a.array) file["array"] = *a.array;
  const auto search = [&file](const char* key, const auto& value) {
    if (value) file["search"][key] = *value;
  };
  search("samples", a.samples);
  search("seed", a.seed);
  search("first", a.first);
  search("factor", a.factor);
  if (!a.better.empty()) file["search"]["better"] = a.better;
  return jobs::read_job_file(file.dump(), "the flags", fs::current_path().string());
}

std::vector<jobs::JobRequest> base_requests(const Arguments& arguments) {
  if (has_sweep(arguments)) return swept_requests(arguments);
  if (arguments.file.empty()) {
    jobs::JobRequest request;
    request.folder = fs::current_path().string();
    return {request};
  }
  const fs::path folder =
      arguments.file == "-" ? fs::current_path() : fs::absolute(arguments.file).parent_path();
  return jobs::read_job_file(text_of(arguments.file), arguments.file, folder.string());
}

void add_environment(jobs::JobRequest& request, const std::vector<std::string>& pairs) {
  for (const std::string& pair : pairs) {
    const size_t equal = pair.find('=');
    if (equal == std::string::npos) {
      throw Error(Code::invalid_argument, "--env needs NAME=VALUE", pair);
    }
    request.environment[pair.substr(0, equal)] = pair.substr(equal + 1);
  }
}

// Flags go before what the file says.
void override(jobs::JobRequest& request, const Arguments& arguments) {
  const auto set = [](const std::string& text, auto& field, auto parse, const char* flag) {
    if (!text.empty()) field = parse(text, flag);
  };
  // Those of a sweep have their values in the command and in the name.
  const bool swept = has_sweep(arguments);
  if (!arguments.command.empty() && !swept) request.command = arguments.command;
  if (!arguments.project.empty()) request.project = arguments.project;
  if (!arguments.folder.empty()) request.folder = fs::absolute(arguments.folder).string();
  if (request.name.empty() && !request.command.empty()) {
    request.name = fs::path(request.command[0]).filename().string();
  }
  if (!arguments.name.empty() && !swept) request.name = arguments.name;
  if (!arguments.gpus.empty()) jobs::parse_gpus(arguments.gpus, "--gpus", request);
  set(arguments.cpus, request.cpu_milli, jobs::parse_milli, "--cpus");
  set(arguments.memory, request.memory_mib, jobs::parse_mib, "--memory");
  set(arguments.grace, request.grace_s, jobs::parse_seconds, "--grace");
  set(arguments.time_limit, request.time_limit_s, jobs::parse_seconds, "--time-limit");
  set(arguments.min_run, request.min_run_s, jobs::parse_seconds, "--min-run");
  set(arguments.backoff, request.backoff_s, jobs::parse_seconds, "--backoff");
  request.priority = arguments.priority.value_or(request.priority);
  request.tasks = arguments.tasks.value_or(request.tasks);
  request.min_tasks = arguments.min_tasks.value_or(request.min_tasks);
  request.retries = arguments.retries.value_or(request.retries);
  request.snapshot |= arguments.snapshot;
  request.preemptible &= !arguments.not_preemptible;
  request.after.insert(request.after.end(), arguments.after.begin(), arguments.after.end());
  if (!arguments.notify.empty()) request.notify = arguments.notify;
  if (!arguments.artefacts.empty()) request.artefacts = arguments.artefacts;
  add_environment(request, arguments.environment);
}

void submit(const Arguments& arguments) {
  std::vector<jobs::JobRequest> requests = base_requests(arguments);
  Json body;
  if (!arguments.key.empty()) body["key"] = arguments.key;
  body["jobs"] = Json::array();
  for (jobs::JobRequest& request : requests) {
    override(request, arguments);
    const std::vector<std::string> problems = jobs::problems_of(request);
    for (size_t i = 0; i + 1 < problems.size(); ++i)
      std::fprintf(stderr, "%s\n", problems[i].c_str());
    if (!problems.empty()) {
      throw Error(Code::invalid_argument, problems.back(), arguments.file,
                  "`dais submit --help` shows the flags");
    }
    body["jobs"].push_back(Json::parse(jobs::to_json(request)));
  }
  const Json answer = arguments.scheduler.call("POST", "/v1/jobs", body.dump());
  if (arguments.scheduler.json) {
    std::printf("%s\n", answer.dump().c_str());
    return;
  }
  const Json& ids = answer["ids"];
  if (ids.size() == 1) {
    std::printf("job %lld\n", static_cast<long long>(ids[0].get<int64_t>()));
  } else {
    std::printf("%zu jobs, %lld to %lld\n", ids.size(),
                static_cast<long long>(ids.front().get<int64_t>()),
                static_cast<long long>(ids.back().get<int64_t>()));
  }
}

void add_flags(CLI::App& command, Arguments& a) {
  command.add_option("-f,--file", a.file, "Job file (YAML or JSON); - reads standard input");
  command.add_option("--name", a.name, "What people call it");
  command.add_option("--project", a.project, "Whose quota it counts against");
  command.add_option("--priority", a.priority, "-1000 to 1000, higher first");
  command.add_option(
      "--gpus", a.gpus,
      "GPUs of each task: 2, or 0.5 or 10GiB of one, or 1,0.5,10GiB of distinct ones");
  command.add_option("--cpus", a.cpus, "CPUs of each task");
  command.add_option("--memory", a.memory, "Memory of each task, such as 8GiB");
  command.add_option("--tasks", a.tasks, "Tasks that start together");
  command.add_option("--min-tasks", a.min_tasks,
                     "Elastic: runs with so few of them, and with more when there is room");
  command.add_option("--folder", a.folder, "Where it runs; this folder otherwise");
  command.add_flag("--snapshot", a.snapshot, "Run in a copy of the folder made now");
  command.add_option("--env", a.environment, "NAME=VALUE, any number of times");
  command.add_flag("--not-preemptible", a.not_preemptible,
                   "Never stopped for another; in quota only");
  command.add_option("--grace", a.grace, "Between SIGTERM and SIGKILL, such as 30s");
  command.add_option("--min-run", a.min_run, "Not preempted before it ran this long");
  command.add_option("--time-limit", a.time_limit, "Stopped after this long, such as 2h");
  command.add_option("--retries", a.retries, "Starts again this often when it fails");
  command.add_option("--backoff", a.backoff, "Before the first retry; doubles each time");
  command.add_option("--after", a.after, "Jobs that must complete first")->delimiter(',');
  command.add_option("--artefacts", a.artefacts,
                     "Files of the working folder to keep when it ends, such as 'out/*.onnx'; any "
                     "number of times");
  command.add_option("--array", a.array, "So many jobs; {index} in the command is their number");
  command.add_option("--sweep", a.sweep,
                     "NAME=A,B,C: a job for every combination, {NAME} in the command its value; "
                     "NAME=FROM..TO or NAME=FROM..TO:log with --samples");
  command.add_option("--samples", a.samples, "Draw so many jobs of the sweep at random");
  command.add_option("--seed", a.seed, "The same seed draws the same");
  command.add_option("--first", a.first,
                     "End losers early: first step at which jobs are compared by what they report");
  command.add_option("--factor", a.factor, "One in so many goes on, and steps grow by it");
  command.add_option("--better", a.better, "smaller or larger")
      ->check(CLI::IsMember({"smaller", "larger"}));
  command.add_option("--key", a.key, "Submitting the same key again gives the same job");
  command.add_option("command", a.command, "Program and arguments, after --");
  // Else one that may come several times would take the -- and what follows for its own.
  for (CLI::Option* option : command.get_options())
    if (!option->get_positional()) option->allow_extra_args(false);
}

}  // namespace

void add_submit(Program& program) {
  auto* command = program.app.add_subcommand("submit", "Hand a job to the scheduler");
  const auto arguments = std::make_shared<Arguments>();
  add_flags(*command, *arguments);
  arguments->scheduler.add_options(*command);
  command->footer("Example: dais submit --gpus 1 --memory 8GiB -- python3 train.py --epochs 3");
  command->callback([arguments] { submit(*arguments); });
}

}  // namespace dais::cli
