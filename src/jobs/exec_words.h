#pragma once

#include <string>
#include <vector>

namespace dais::jobs {

/// Words or variables as exec and posix_spawn take them; they must outlive it.
inline std::vector<char*> exec_words(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace dais::jobs
