#pragma once

#include <string>
#include <vector>

namespace dais {

/// A parsed equation with one label for each axis. Letters are their own codes; axes of an ellipsis
/// are kEllipsis + k, k counted from the last one.
struct EinsumEquation {
  static constexpr int kEllipsis = 256;
  std::vector<std::vector<int>> terms;
  std::vector<int> result;
};

/// Parses for inputs of the given ranks. Gives what is wrong, or "".
std::string parse_einsum(const std::string& equation, const std::vector<size_t>& ranks,
                         EinsumEquation& out);

}  // namespace dais
