#pragma once

#include <CLI/CLI.hpp>

/// One file per subcommand. Each adds itself to the program and throws Error to fail; a check that
/// ran and did not hold sets `status` to 1 instead.
namespace dais::cli {

struct Program {
  CLI::App app;
  int status = 0;  ///< exit code of a run that ended without an error
};

/// The whole program: what the words ask for, errors written to the error stream. Gives the exit
/// code.
int run_program(int argc, char** argv);

void add_bench(Program& program);
void add_convert(Program& program);
void add_compare(Program& program);
void add_data(Program& program);
void add_devices(Program& program);
void add_eval(Program& program);
void add_explain(Program& program);
void add_export(Program& program);
void add_inspect(Program& program);
void add_new(Program& program);
void add_predict(Program& program);
void add_replay(Program& program);
void add_run(Program& program);
void add_simulate(Program& program);
void add_train(Program& program);
void add_up(Program& program);
void add_verify(Program& program);

}  // namespace dais::cli
