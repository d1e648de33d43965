#include <cstdio>

#include "base/error.h"
#include "cli/scheduler.h"
#include "jobs/controller.h"

namespace dais::cli {
namespace {

using Json = nlohmann::ordered_json;

void print_projects(const Scheduler& scheduler, const Json& answer) {
  if (scheduler.json) {
    std::printf("%s\n", answer.dump().c_str());
    return;
  }
  const auto amount = [](const Json& amounts, const char* key, double scale) {
    return amounts.contains(key) ? CLI::detail::to_string(amounts[key].get<double>() / scale)
                                 : std::string("-");
  };
  std::printf("%-16s %-12s %10s %10s %7s  %s\n", "project", "parent", "quota", "limit", "weight",
              "members");
  for (const Json& project : answer["projects"]) {
    std::string members;
    for (const Json& member : project["members"]) members += member.get<std::string>() + " ";
    std::printf("%-16s %-12s %10s %10s %7g  %s\n", project["name"].get<std::string>().c_str(),
                project["parent"].get<std::string>().c_str(),
                amount(project["quota"], "gpu_milli", 1000).c_str(),
                amount(project["limit"], "gpu_milli", 1000).c_str(),
                project["weight"].get<double>(), members.empty() ? "everybody" : members.c_str());
  }
}

void add_token(Program& program) {
  struct Arguments {
    Scheduler scheduler;
    std::string user;
    bool admin = false;
  };
  auto* command = program.app.add_subcommand("token", "Make a token for access over HTTP");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("user", arguments->user, "For whom")->required();
  command->add_flag("--admin", arguments->admin, "May do everything");
  arguments->scheduler.add_options(*command);
  command->footer("Example: dais token anna");
  command->callback([arguments] {
    const Json body = {{"user", arguments->user}, {"admin", arguments->admin}};
    const Json answer = arguments->scheduler.call("POST", "/v1/tokens", body.dump());
    std::printf("%s\n", arguments->scheduler.json ? answer.dump().c_str()
                                                  : answer["token"].get<std::string>().c_str());
  });
}

}  // namespace

void add_project(Program& program) {
  struct Arguments {
    Scheduler scheduler;
    jobs::ProjectRequest project;
    std::string quota, limit;
  };
  auto* command = program.app.add_subcommand("project", "List projects, or set one");
  const auto arguments = std::make_shared<Arguments>();
  jobs::ProjectRequest& project = arguments->project;
  command->add_option("name", project.name, "The one to set");
  command->add_option("--parent", project.parent, "Whose quota its own lies within");
  command->add_option("--quota", arguments->quota, "GPUs it is guaranteed");
  command->add_option("--limit", arguments->limit, "GPUs it never exceeds");
  command->add_option("--weight", project.weight, "Its share of what no quota claims")
      ->capture_default_str();
  command->add_option("--members", project.members, "Who may submit; everybody otherwise")
      ->delimiter(',');
  command->add_option("--viewers", project.viewers, "Who may look")->delimiter(',');
  arguments->scheduler.add_options(*command);
  command->footer("Example: dais project vision --quota 4 --limit 8 --members anna,ben");
  command->callback([arguments] {
    jobs::ProjectRequest& wanted = arguments->project;
    if (wanted.name.empty()) {
      return print_projects(arguments->scheduler, arguments->scheduler.call("GET", "/v1/projects"));
    }
    if (!arguments->quota.empty()) {
      // CPUs and memory are not governed by a quota of GPUs.
      wanted.quota = {jobs::parse_milli(arguments->quota, "--quota"), jobs::unlimited,
                      jobs::unlimited};
    }
    if (!arguments->limit.empty()) {
      wanted.limit.gpu_milli = jobs::parse_milli(arguments->limit, "--limit");
    }
    print_projects(arguments->scheduler,
                   arguments->scheduler.call("PUT", "/v1/projects", jobs::to_json(wanted)));
  });
  add_token(program);
}

}  // namespace dais::cli
