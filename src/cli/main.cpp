#include <cstdio>
#include <exception>

#include "base/error.h"
#include "cli/command.h"
#include "cli/scheduler.h"

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
  const std::string guess = dais::nearest(argv[1], verbs);
  std::fprintf(stderr, "dais: '%s' is not a command%s\n", argv[1],
               guess.empty() ? "; see dais --help" : (". Did you mean '" + guess + "'?").c_str());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    dais::cli::Program program;
    program.app.description("dais: neural networks from ONNX files, on this machine");
    program.app.name("dais");
    program.app.require_subcommand(1);
    dais::cli::add_inspect(program);
    dais::cli::add_run(program);
    dais::cli::add_verify(program);
    dais::cli::add_explain(program);
    dais::cli::add_devices(program);
    dais::cli::add_bench(program);
    dais::cli::add_compare(program);
    dais::cli::add_train(program);
    dais::cli::add_eval(program);
    dais::cli::add_predict(program);
    dais::cli::add_export(program);
    dais::cli::add_replay(program);
    dais::cli::add_simulate(program);
    dais::cli::add_convert(program);
    dais::cli::add_data(program);
    dais::cli::add_new(program);
    dais::cli::add_up(program);
    dais::cli::add_submit(program);
    dais::cli::add_job_verbs(program);
    dais::cli::add_project(program);
    dais::cli::add_report(program);
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
