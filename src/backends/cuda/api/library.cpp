#include "backends/cuda/api/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

namespace dais::cuda {
namespace {

std::vector<std::string> search_folders() {
  std::vector<std::string> folders;
  if (const char* listed = std::getenv("DAIS_CUDA_LIBRARIES")) {
    std::string rest = listed;
    while (!rest.empty()) {
      const size_t end = rest.find(':');
      if (end != 0) folders.push_back(rest.substr(0, end));
      rest = end == std::string::npos ? std::string() : rest.substr(end + 1);
    }
  }
  folders.emplace_back("/usr/local/cuda/lib64");
  return folders;
}

}  // namespace

Library::Library(std::string name, std::span<const std::string> files, std::string remedy) {
  report_.name = std::move(name);
  // Symbols stay local, as two versions of a library may be in one process.
  constexpr int kMode = RTLD_NOW | RTLD_LOCAL;
  std::string first_failure;
  const auto open = [&](const std::string& file) {
    handle_ = dlopen(file.c_str(), kMode);
    if (handle_) report_.file = file;
    if (!handle_ && first_failure.empty()) {
      const char* text = dlerror();
      first_failure = text ? text : "cannot be opened";
    }
    return handle_ != nullptr;
  };
  for (const std::string& file : files)
    if (open(file)) return;
  for (const std::string& folder : search_folders())
    for (const std::string& file : files) {
      const std::filesystem::path path = std::filesystem::path(folder) / file;
      std::error_code failed;
      if (std::filesystem::exists(path, failed) && open(path.string())) return;
    }
  refuse(files.empty() ? "no version of it fits the driver" : first_failure, std::move(remedy));
}

void Library::refuse(std::string problem, std::string remedy) {
  if (!report_.usable()) return;
  report_.problem = std::move(problem);
  report_.remedy = std::move(remedy);
}

void* Library::address(const char* symbol) {
  if (!handle_) return nullptr;
  void* found = dlsym(handle_, symbol);
  if (!found)
    refuse(report_.file + " lacks " + symbol, "Install a newer version of " + report_.name);
  return found;
}

std::string version_text(int thousands) {
  return std::to_string(thousands / 1000) + "." + std::to_string(thousands % 1000 / 10);
}

}  // namespace dais::cuda
