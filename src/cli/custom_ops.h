#pragma once

#include <filesystem>

#include "cli/command.h"

namespace dais::cli {

/// Adds --ops DIR to a command: its operators are known before the command reads a model.
void add_ops_option(CLI::App& command);

/// Makes every operator of a folder known: each NAME.yaml beside the .cu file that it names.
/// Throws `invalid_argument` naming the file and what is wrong in it.
void load_custom_ops(const std::filesystem::path& folder);

}  // namespace dais::cli
