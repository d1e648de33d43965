#pragma once

#include <optional>
#include <string>

namespace dais::cuda {

/// Compiled programs kept on disk from process to process. A file holds its whole key, so that one
/// that was damaged, or is another's by chance, counts as absent. Nothing here throws: without a
/// place to write, programs are compiled anew.

std::optional<std::string> cached_image(const std::string& key) noexcept;
void keep_image(const std::string& key, const std::string& image) noexcept;

}  // namespace dais::cuda
