#pragma once

#include <filesystem>

#include "cli/command.h"

namespace dais::cli {

/// Sets the flags of a command that its command line left out from a YAML file: a map from long
/// names without the dashes to values, lists for flags that take several. Throws
/// `invalid_argument` naming file and key for unknown keys (with the nearest) and for values that
/// the flag refuses.
void apply_yaml(CLI::App& command, const std::filesystem::path& file);

/// The flags that were given (by command line or file) in the form that apply_yaml reads, but those
/// named in `without`.
std::string yaml_of(const CLI::App& command, const std::vector<std::string>& without);

}  // namespace dais::cli
