#pragma once

#include <span>
#include <string>
#include <vector>

namespace dais::cuda {

/// What is known of one library: from which file it came, or why it is of no use and what helps.
struct LibraryReport {
  std::string name;     ///< "NVRTC"
  std::string file;     ///< what was opened; empty when nothing was
  std::string version;  ///< as its users know it: "13.0"
  std::string problem;  ///< empty: usable
  std::string remedy;
  bool usable() const { return problem.empty(); }
};

/// A table of entry points with what is known of the library that they come from. The pointers are
/// valid until the process ends, and all set, when the report is usable.
template <typename Api>
struct Loaded {
  Api api = {};
  LibraryReport report;
};

/// One shared library, opened for as long as the process lives.
class Library {
 public:
  /// Opens the first of `files` that the loader finds: by name, then in the folders of
  /// DAIS_CUDA_LIBRARIES (separated by colons) and of an installed toolkit.
  Library(std::string name, std::span<const std::string> files, std::string remedy);

  /// Looks up one entry point; a missing one makes the report unusable.
  template <typename Function>
  void find(const char* symbol, Function*& entry) {
    entry = reinterpret_cast<Function*>(address(symbol));
  }

  bool usable() const { return report_.usable(); }
  LibraryReport& report() { return report_; }
  const LibraryReport& report() const { return report_; }
  /// Says why the library is of no use; the first reason stands.
  void refuse(std::string problem, std::string remedy = {});

 private:
  void* address(const char* symbol);

  void* handle_ = nullptr;
  LibraryReport report_;
};

/// "13.0" of the 13000 by which the driver and the toolkit count versions.
std::string version_text(int thousands);

}  // namespace dais::cuda
