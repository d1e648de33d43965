#include "backends/cuda/api/nvrtc.h"

namespace dais::cuda {
namespace {

constexpr int kNewestMajor = 13;
constexpr int kOldestMajor = 12;

/// A program compiled by a toolkit of a higher major number does not load.
std::vector<std::string> file_names(int driver_version) {
  std::vector<std::string> files;
  for (int major = kNewestMajor; major >= kOldestMajor; --major)
    if (driver_version == 0 || major * 1000 <= driver_version)
      files.push_back("libnvrtc.so." + std::to_string(major));
  return files;
}

}  // namespace

Loaded<NvrtcApi> load_nvrtc(int driver_version) {
  const auto files = file_names(driver_version);
  Library library("NVRTC", files,
                  "Install the CUDA toolkit's NVRTC (12 or 13, no newer than the driver), or name "
                  "its folder in DAIS_CUDA_LIBRARIES");
  Loaded<NvrtcApi> out;
  NvrtcApi& api = out.api;
  library.find("nvrtcGetErrorString", api.get_error_string);
  library.find("nvrtcVersion", api.version);
  library.find("nvrtcGetNumSupportedArchs", api.get_num_supported_archs);
  library.find("nvrtcGetSupportedArchs", api.get_supported_archs);
  library.find("nvrtcCreateProgram", api.create_program);
  library.find("nvrtcDestroyProgram", api.destroy_program);
  library.find("nvrtcCompileProgram", api.compile_program);
  library.find("nvrtcGetCUBINSize", api.get_cubin_size);
  library.find("nvrtcGetCUBIN", api.get_cubin);
  library.find("nvrtcGetPTXSize", api.get_ptx_size);
  library.find("nvrtcGetPTX", api.get_ptx);
  library.find("nvrtcGetProgramLogSize", api.get_program_log_size);
  library.find("nvrtcGetProgramLog", api.get_program_log);
  int major = 0, minor = 0;
  if (library.usable() && api.version(&major, &minor) == NvrtcResult::success)
    library.report().version = std::to_string(major) + "." + std::to_string(minor);
  out.report = library.report();
  return out;
}

}  // namespace dais::cuda
