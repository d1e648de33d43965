#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.h"
#include "jobs/journal.h"
#include "jobs/machine.h"

namespace dais::cli {
namespace {

struct Arguments {
  std::string journal, policy;
  std::string folder = jobs::default_data_folder();
  bool json = false;
};

void print(const jobs::ReplayReport& report, const std::string& path, bool json) {
  if (json) {
    const nlohmann::ordered_json out = {{"journal", path},
                                        {"events", report.events},
                                        {"cycles", report.cycles},
                                        {"starts", report.starts},
                                        {"preemptions", report.preemptions},
                                        {"differing", report.differing},
                                        {"first_line", report.first_line},
                                        {"first_difference", report.first_difference}};
    std::printf("%s\n", out.dump().c_str());
    return;
  }
  std::printf("%s: %lld events, %lld cycles, %lld starts, %lld preemptions\n", path.c_str(),
              static_cast<long long>(report.events), static_cast<long long>(report.cycles),
              static_cast<long long>(report.starts), static_cast<long long>(report.preemptions));
  if (report.differing == 0) {
    std::printf("every cycle is decided as it was\n");
    return;
  }
  std::printf("%lld cycles are decided otherwise, the first in line %lld: %s\n",
              static_cast<long long>(report.differing), static_cast<long long>(report.first_line),
              report.first_difference.c_str());
}

}  // namespace

void add_replay(Program& program) {
  auto* command = program.app.add_subcommand(
      "replay", "Decide again what the scheduler decided, from the journal it keeps");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("journal", arguments->journal,
                      "File; the newest of the data folder otherwise");
  command->add_option("--data", arguments->folder, "Data folder of `dais up`")
      ->capture_default_str();
  command->add_option("--policy", arguments->policy,
                      "Decide by this one: fifo, priority, fair, las or default");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->footer("Example: dais replay --policy fair");
  command->callback([arguments, &program] {
    std::optional<jobs::Policy> policy;
    if (!arguments->policy.empty()) policy = jobs::policy_named(arguments->policy);
    const std::string path =
        arguments->journal.empty() ? jobs::latest_journal(arguments->folder) : arguments->journal;
    const jobs::ReplayReport report = jobs::replay(path, policy);
    print(report, path, arguments->json);
    // By another policy a difference is an answer; by the same one it is a fault.
    if (report.differing > 0 && !policy) program.status = 1;
  });
}

}  // namespace dais::cli
