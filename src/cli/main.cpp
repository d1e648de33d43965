#include "cli/command.h"

int main(int argc, char** argv) { return dais::cli::run_program(argc, argv); }
