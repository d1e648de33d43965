#include "backends/cuda/text.h"

#include <string>
#include <vector>

#include "base/error.h"

namespace dais::cuda {

std::string_view text(std::string_view name) {
  for (const Text& candidate : texts())
    if (candidate.name == name) return candidate.contents;
  throw Error(Code::internal, "no text named '" + std::string(name) + "' is embedded");
}

std::span<const Text> device_headers() {
  static const std::vector<Text> headers = [] {
    std::vector<Text> found;
    for (const Text& candidate : texts())
      if (candidate.name.ends_with(".cuh")) found.push_back(candidate);
    return found;
  }();
  return headers;
}

}  // namespace dais::cuda
