#include "backends/cuda/api/cudnn.h"

namespace dais::cuda {

Loaded<CudnnApi> load_cudnn(int driver_version) {
  const std::vector<std::string> files{"libcudnn.so.9"};
  const std::string remedy =
      "Convolutions then run on kernels of dais; for speed install cuDNN 9, built for a CUDA no "
      "newer than the driver";
  Library library("cuDNN", files, remedy);
  Loaded<CudnnApi> out;
  CudnnApi& api = out.api;
  library.find("cudnnGetVersion", api.get_version);
  library.find("cudnnGetCudartVersion", api.get_cudart_version);
  library.find("cudnnGetErrorString", api.get_error_string);
  library.find("cudnnCreate", api.create);
  library.find("cudnnDestroy", api.destroy);
  library.find("cudnnSetStream", api.set_stream);
  library.find("cudnnBackendCreateDescriptor", api.descriptor_create);
  library.find("cudnnBackendDestroyDescriptor", api.descriptor_destroy);
  library.find("cudnnBackendFinalize", api.finalize);
  library.find("cudnnBackendSetAttribute", api.set_attribute);
  library.find("cudnnBackendGetAttribute", api.get_attribute);
  library.find("cudnnBackendExecute", api.execute);
  if (library.usable()) {
    const size_t version = api.get_version();
    library.report().version =
        std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100);
    // Minor releases of a CUDA run on drivers of its first; newer majors do not.
    const auto built = static_cast<int>(api.get_cudart_version());
    if (version < 90000 || version >= 100000)
      library.refuse("is of version " + library.report().version + ", not 9", remedy);
    else if (driver_version > 0 && built / 1000 > driver_version / 1000)
      library.refuse("was built for CUDA " + version_text(built) + ", but the driver speaks " +
                         version_text(driver_version),
                     remedy);
  }
  out.report = library.report();
  return out;
}

}  // namespace dais::cuda
