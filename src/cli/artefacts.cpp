#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "cli/scheduler.h"
#include "http/client.h"

namespace dais::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Arguments {
  Scheduler scheduler;
  int64_t id = 0;
  std::string output;
};

void fetch_one(const Arguments& arguments, const std::string& path) {
  // Whatever the scheduler says, nothing is written outside the folder that was asked for.
  const fs::path target = confined_path(arguments.output, path);
  std::error_code error;
  fs::create_directories(target.parent_path(), error);
  std::ofstream file(target, std::ios::binary);
  arguments.scheduler.fetch(
      "/v1/jobs/" + std::to_string(arguments.id) + "/artefact?path=" + http::percent_encode(path),
      [&file](std::string_view piece) {
        file.write(piece.data(), static_cast<std::streamsize>(piece.size()));
        return file.good();
      });
  if (!file.flush()) {
    throw Error(Code::unavailable, "cannot write the file", target.string(),
                "Check the rights and the free space");
  }
}

void print(const Json& all) {
  for (const Json& file : all["files"]) {
    std::printf("%12lld  %s\n", static_cast<long long>(file["bytes"].get<int64_t>()),
                file["path"].get<std::string>().c_str());
  }
  for (const Json& one : all["left_out"]) {
    std::printf("left out: %s: %s\n", one["path"].get<std::string>().c_str(),
                one["why"].get<std::string>().c_str());
  }
}

void artefacts(const Arguments& arguments) {
  const Json answer =
      arguments.scheduler.call("GET", "/v1/jobs/" + std::to_string(arguments.id) + "/artefacts");
  const Json& all = answer["artefacts"];
  if (!all.is_object()) {
    throw Error(Code::not_found, "the job keeps no artefacts",
                "job " + std::to_string(arguments.id), "Submit it with --artefacts PATTERN");
  }
  const std::string state = all["state"];
  if (!arguments.output.empty() && state != "kept") {
    throw Error(Code::unavailable,
                state == "keeping" ? "they are still being copied"
                : state == "later" ? "they are kept when the job ends"
                                   : "nothing was kept of it",
                "job " + std::to_string(arguments.id));
  }
  if (!arguments.output.empty()) {
    for (const Json& file : all["files"]) fetch_one(arguments, file["path"]);
  }
  if (arguments.scheduler.json) {
    std::printf("%s\n", answer.dump().c_str());
    return;
  }
  if (state != "kept") std::printf("%s\n", state.c_str());
  print(all);
}

}  // namespace

void add_artefacts(Program& program) {
  auto* command = program.app.add_subcommand("artefacts", "The files that were kept of a job");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("id", arguments->id, "Its number")->required();
  command->add_option("-o,--output", arguments->output, "Fetch them into this folder");
  arguments->scheduler.add_options(*command);
  command->footer("Example: dais artefacts 17 --output results");
  command->callback([arguments] { artefacts(*arguments); });
}

}  // namespace dais::cli
