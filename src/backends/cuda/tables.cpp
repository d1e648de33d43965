#include "backends/cuda/tables.h"

#include "backends/cuda/emulated/emulated.h"

namespace dais::cuda {

const Tables& system_tables() {
  static const Tables tables = [] {
    Tables out;
    out.driver = load_driver();
    int version = 0;
    if (out.driver.report.usable()) out.driver.api.driver_get_version(&version);
    out.nvrtc = load_nvrtc(version);
    out.cublaslt = load_cublaslt(version);
    out.cudnn = load_cudnn(version);
    return out;
  }();
  return tables;
}

const Tables& emulated_tables() {
  static const Tables tables = [] {
    Tables out;
    out.driver.api = emulated::driver_api();
    out.driver.report = {"driver", "built in", "emulated", {}, {}};
    out.nvrtc.api = emulated::nvrtc_api();
    out.nvrtc.report = {"NVRTC", "built in", "g++", {}, {}};
    out.cublaslt.report = {"cuBLASLt", {}, {}, "is not emulated", {}};
    out.cudnn.report = {"cuDNN", {}, {}, "is not emulated", {}};
    out.hardware = false;
    return out;
  }();
  return tables;
}

}  // namespace dais::cuda
