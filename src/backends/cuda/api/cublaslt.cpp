#include "backends/cuda/api/cublaslt.h"

namespace dais::cuda {

Loaded<CublasLtApi> load_cublaslt(int driver_version) {
  std::vector<std::string> files;
  for (const int major : {13, 12})
    if (driver_version == 0 || major * 1000 <= driver_version)
      files.push_back("libcublasLt.so." + std::to_string(major));
  Library library(
      "cuBLASLt", files,
      "Matrix products then run on kernels of dais; for speed install cuBLAS of CUDA 12 "
      "or 13, no newer than the driver");
  Loaded<CublasLtApi> out;
  CublasLtApi& api = out.api;
  library.find("cublasLtCreate", api.create);
  library.find("cublasLtDestroy", api.destroy);
  library.find("cublasLtGetVersion", api.get_version);
  library.find("cublasLtGetStatusName", api.get_status_name);
  library.find("cublasLtMatmulDescCreate", api.desc_create);
  library.find("cublasLtMatmulDescDestroy", api.desc_destroy);
  library.find("cublasLtMatmulDescSetAttribute", api.desc_set);
  library.find("cublasLtMatrixLayoutCreate", api.layout_create);
  library.find("cublasLtMatrixLayoutDestroy", api.layout_destroy);
  library.find("cublasLtMatrixLayoutSetAttribute", api.layout_set);
  library.find("cublasLtMatmulPreferenceCreate", api.preference_create);
  library.find("cublasLtMatmulPreferenceDestroy", api.preference_destroy);
  library.find("cublasLtMatmulPreferenceSetAttribute", api.preference_set);
  library.find("cublasLtMatmulAlgoGetHeuristic", api.heuristic);
  library.find("cublasLtMatmul", api.matmul);
  if (library.usable()) {
    const size_t version = api.get_version();
    library.report().version =
        std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100);
  }
  out.report = library.report();
  return out;
}

}  // namespace dais::cuda
