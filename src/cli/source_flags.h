#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "data/dataset.h"

namespace dais::cli {

/// The flags of `dais data` that say how data is read; they are called as those of `dais train`.
struct SourceFlags {
  data::OpenOptions open;
  std::string size, resize = "squash", feature = "mel", tokens = "character";

  /// Adds the flags to a command.
  void add(CLI::App& command);
  /// The flags as options; throws `invalid_argument` for values that mean nothing.
  data::OpenOptions options() const;
};

/// "32x40" (height x width) or "32".
std::pair<int64_t, int64_t> parse_size(const std::string& text, const char* flag);

}  // namespace dais::cli
