#pragma once

#include <string>
#include <vector>

namespace dais::cuda::emulated {

struct ProcessResult {
  int status = -1;     ///< exit status; -1: it did not start or was killed
  std::string output;  ///< of both streams
};

/// Runs a program of the PATH and waits for it.
ProcessResult run_process(const std::vector<std::string>& arguments);

}  // namespace dais::cuda::emulated
