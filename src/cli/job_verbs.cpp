#include <cstdio>
#include <ctime>

#include "base/error.h"
#include "cli/scheduler.h"
#include "http/client.h"

namespace dais::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string when(const Json& seconds) {
  if (!seconds.is_number()) return "-";
  const auto time = static_cast<time_t>(seconds.get<double>());
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", std::localtime(&time));
  return text;
}

std::string phase_of(const Json& job) {
  const std::string phase = job["phase"];
  return job["held"].get<bool>() && phase == "waiting" ? "held" : phase;
}

std::string devices_of(const Json& job) {
  std::string out;
  for (const Json& device : job["devices"]) {
    out += (out.empty() ? "" : ",") + std::to_string(device.get<int>());
  }
  return out.empty() ? "-" : out;
}

// "1.5 (1 + 0.5)" where parts of several devices are asked for.
std::string gpus_of(const Json& job) {
  const auto number = [](const Json& value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value.get<double>());
    return std::string(text);
  };
  std::string parts;
  for (const Json& part : job["gpu_parts"]) parts += (parts.empty() ? "" : " + ") + number(part);
  return number(job["gpus"]) + (parts.empty() ? "" : " (" + parts + ")");
}

}  // namespace

void print_jobs(const Json& jobs) {
  std::printf("%7s  %-28s %-12s %-10s %-10s %5s %-8s %9s\n", "id", "name", "project", "user",
              "phase", "gpus", "devices", "ran");
  for (const Json& job : jobs) {
    const double gpus = job["gpus"].get<double>() * job["tasks"].get<int>();
    std::printf("%7lld  %-28.28s %-12.12s %-10.10s %-10s %5g %-8s %9s\n",
                static_cast<long long>(job["id"].get<int64_t>()),
                job["name"].get<std::string>().c_str(), job["project"].get<std::string>().c_str(),
                job["user"].get<std::string>().c_str(), phase_of(job).c_str(), gpus,
                devices_of(job).c_str(), rough_time(job["ran_s"].get<double>()).c_str());
  }
  if (jobs.empty()) std::printf("no jobs\n");
}

namespace {

void print_job(const Json& job) {
  std::printf("job %lld: %s\n", static_cast<long long>(job["id"].get<int64_t>()),
              job["name"].get<std::string>().c_str());
  std::printf("  phase      %s\n", phase_of(job).c_str());
  std::printf("  why        %s\n", job["why"].get<std::string>().c_str());
  std::printf("  project    %s, user %s, priority %d\n", job["project"].get<std::string>().c_str(),
              job["user"].get<std::string>().c_str(), job["priority"].get<int>());
  std::printf("  asks for   %d x %s GPUs, devices %s, wall: %s\n", job["tasks"].get<int>(),
              gpus_of(job).c_str(), devices_of(job).c_str(),
              job["wall"].get<std::string>().c_str());
  std::printf("  submitted  %s, started %s, ended %s\n", when(job["submitted_s"]).c_str(),
              when(job["started_s"]).c_str(), when(job["ended_s"]).c_str());
  std::printf("  attempts   %lld, failures %lld, ran %s\n",
              static_cast<long long>(job["attempts"].get<int64_t>()),
              static_cast<long long>(job["failures"].get<int64_t>()),
              rough_time(job["ran_s"].get<double>()).c_str());
  if (job["artefacts"].is_object()) {
    std::printf("  artefacts  %s, %zu files, %zu left out\n",
                job["artefacts"]["state"].get<std::string>().c_str(),
                job["artefacts"]["files"].size(), job["artefacts"]["left_out"].size());
  }
  std::printf("  command   ");
  for (const Json& word : job["request"]["command"]) {
    std::printf(" %s", word.get<std::string>().c_str());
  }
  std::printf("\n  history\n");
  for (const Json& event : job["events"]) {
    std::printf("    %s  %-10s %s\n", when(event["at_s"]).c_str(),
                event["kind"].get<std::string>().c_str(),
                event["detail"].get<std::string>().c_str());
  }
}

std::string job_target(int64_t id, const std::string& action) {
  return "/v1/jobs/" + std::to_string(id) + (action.empty() ? "" : "/" + action);
}

void add_list(Program& program) {
  struct Arguments {
    Scheduler scheduler;
    bool all = false;
    int most = 100;
  };
  auto* command = program.app.add_subcommand("jobs", "List jobs, newest first");
  const auto arguments = std::make_shared<Arguments>();
  command->add_flag("--all,-a", arguments->all, "Those that have ended too");
  command->add_option("--most", arguments->most, "At most so many")->capture_default_str();
  arguments->scheduler.add_options(*command);
  command->footer("Example: dais jobs --all --most 20");
  command->callback([arguments] {
    const Json answer =
        arguments->scheduler.call("GET", "/v1/jobs?all=" + std::to_string(arguments->all) +
                                             "&most=" + std::to_string(arguments->most));
    if (arguments->scheduler.json) {
      std::printf("%s\n", answer.dump().c_str());
    } else {
      print_jobs(answer["jobs"]);
    }
  });
}

void add_show(Program& program) {
  struct Arguments {
    Scheduler scheduler;
    int64_t id = 0;
  };
  auto* job = program.app.add_subcommand("job", "One job");
  job->require_subcommand(1);
  auto* command = job->add_subcommand("show", "What it is, where it stands and its history");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("id", arguments->id, "Its number")->required();
  arguments->scheduler.add_options(*command);
  job->footer("Example: dais job show 17 --json");
  command->footer("Example: dais job show 17 --json");
  command->callback([arguments] {
    const Json answer = arguments->scheduler.call("GET", job_target(arguments->id, ""));
    if (arguments->scheduler.json) {
      std::printf("%s\n", answer.dump().c_str());
    } else {
      print_job(answer);
    }
  });
}

void add_logs(Program& program) {
  struct Arguments {
    Scheduler scheduler;
    int64_t id = 0, attempt = 0;
    int task = 0;
    bool follow = false;
  };
  auto* command = program.app.add_subcommand("logs", "What a job printed");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("id", arguments->id, "Its number")->required();
  command->add_flag("-f,--follow", arguments->follow, "Go on until it ends");
  command->add_option("--attempt", arguments->attempt, "Which; the last otherwise");
  command->add_option("--task", arguments->task, "Which of a gang")->capture_default_str();
  arguments->scheduler.add_options(*command);
  command->footer("Example: dais logs -f 17");
  command->callback([arguments] {
    std::string target = job_target(arguments->id, "log") +
                         "?task=" + std::to_string(arguments->task) +
                         "&follow=" + std::to_string(arguments->follow);
    if (arguments->attempt > 0) target += "&attempt=" + std::to_string(arguments->attempt);
    arguments->scheduler.stream(target);
  });
}

void add_action(Program& program, const std::string& verb, const std::string& what) {
  struct Arguments {
    Scheduler scheduler;
    std::vector<int64_t> ids;
  };
  auto* command = program.app.add_subcommand(verb, what);
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("id", arguments->ids, "Numbers of jobs")->required();
  arguments->scheduler.add_options(*command);
  command->footer("Example: dais " + verb + " 17");
  command->callback([arguments, verb] {
    for (const int64_t id : arguments->ids) {
      const Json answer = arguments->scheduler.call("POST", job_target(id, verb));
      if (arguments->scheduler.json) {
        std::printf("%s\n", answer.dump().c_str());
      } else {
        std::printf("job %lld: %s\n", static_cast<long long>(id), phase_of(answer).c_str());
      }
    }
  });
}

void add_why(Program& program) {
  struct Arguments {
    Scheduler scheduler;
    int64_t id = 0;
  };
  auto* command = program.app.add_subcommand("why", "What a waiting job waits for");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("id", arguments->id, "Its number")->required();
  arguments->scheduler.add_options(*command);
  command->footer("Example: dais why 17");
  command->callback([arguments] {
    const Json answer = arguments->scheduler.call("GET", job_target(arguments->id, "why"));
    std::printf("%s\n", arguments->scheduler.json ? answer.dump().c_str()
                                                  : answer["why"].get<std::string>().c_str());
  });
}

}  // namespace

void add_job_verbs(Program& program) {
  add_list(program);
  add_show(program);
  add_logs(program);
  add_artefacts(program);
  add_action(program, "cancel", "End jobs for good");
  add_action(program, "pause", "Stop jobs and hold them back");
  add_action(program, "resume", "Let held jobs go");
  add_action(program, "requeue", "Stop jobs; they wait again");
  add_why(program);
  add_top(program);
}

}  // namespace dais::cli
