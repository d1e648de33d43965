#pragma once

#include <string>
#include <vector>

namespace dais::cuda::emulated {

struct SourceFile {
  std::string name, contents;
};

/// How a kernel's text becomes a module.
struct CompileJob {
  SourceFile program;
  std::vector<SourceFile> headers;   ///< found by #include "name"
  std::vector<std::string> options;  ///< NVRTC's; those without meaning on a CPU are passed over
  bool checked = true;               ///< observe every access of memory
};

struct Compiled {
  std::string image;  ///< empty: it failed
  std::string log;    ///< "name(line): error: ..." as NVRTC writes it
  bool bad_option = false;
};

/// Compiles with the system's g++ (or what DAIS_CXX names). Results are kept on disk by content,
/// under DAIS_CACHE, XDG_CACHE_HOME or the home's .cache; any number of processes may share them.
Compiled compile(const CompileJob& job);

/// The text with what g++ cannot parse rewritten and its kernels exported. Lines keep their
/// numbers. Kernels are the functions defined as `extern "C" __global__`.
std::string translate(const std::string& text);

}  // namespace dais::cuda::emulated
