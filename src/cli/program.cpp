#include <cstdio>
#include <exception>

#include "base/error.h"
#include "cli/command.h"
#include "cli/scheduler.h"

namespace dais::cli {
namespace {

constexpr int kWrongUsage = 2;

/// "Did you mean" for a first word that is no verb.
bool explain_unknown_verb(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return false;
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) {
    if (verb->get_name() == argv[1]) return false;
    verbs.push_back(verb->get_name());
  }
  const std::string guess = nearest(argv[1], verbs);
  std::fprintf(stderr, "dais: '%s' is not a command%s\n", argv[1],
               guess.empty() ? "; see dais --help" : (". Did you mean '" + guess + "'?").c_str());
  return true;
}

}  // namespace

int run_program(int argc, char** argv) {
  try {
    Program program;
    program.app.description("dais: neural networks from ONNX files, on this machine");
    program.app.name("dais");
    program.app.require_subcommand(1);
    add_inspect(program);
    add_run(program);
    add_verify(program);
    add_explain(program);
    add_devices(program);
    add_bench(program);
    add_compare(program);
    add_train(program);
    add_eval(program);
    add_predict(program);
    add_export(program);
    add_replay(program);
    add_simulate(program);
    add_convert(program);
    add_data(program);
    add_new(program);
    add_up(program);
    add_submit(program);
    add_job_verbs(program);
    add_project(program);
    add_report(program);
    if (explain_unknown_verb(program.app, argc, argv)) return kWrongUsage;
    try {
      program.app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return program.app.exit(error) == 0 ? 0 : kWrongUsage;
    }
    return program.status;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dais: %s\n", error.what());
    return kWrongUsage;
  }
}

}  // namespace dais::cli
