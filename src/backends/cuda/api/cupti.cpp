#include "backends/cuda/api/cupti.h"

namespace dais::cuda {

Loaded<CuptiApi> load_cupti(int driver_version) {
  std::vector<std::string> files;
  for (const int major : {13, 12})
    if (driver_version == 0 || major * 1000 <= driver_version)
      files.push_back("libcupti.so." + std::to_string(major));
  Library library("CUPTI", files,
                  "Traces then lack the device's lanes; install CUPTI of CUDA 12 or 13, no newer "
                  "than the driver");
  Loaded<CuptiApi> out;
  CuptiApi& api = out.api;
  library.find("cuptiGetVersion", api.get_version);
  library.find("cuptiGetResultString", api.get_result_string);
  library.find("cuptiGetTimestamp", api.get_timestamp);
  library.find("cuptiActivityEnable", api.enable);
  library.find("cuptiActivityDisable", api.disable);
  library.find("cuptiActivityRegisterCallbacks", api.register_callbacks);
  library.find("cuptiActivityFlushAll", api.flush_all);
  library.find("cuptiActivityGetNextRecord", api.next_record);
  uint32_t version = 0;
  if (library.usable() && api.get_version(&version) == CuptiResult::success)
    library.report().version = std::to_string(version);
  out.report = library.report();
  return out;
}

}  // namespace dais::cuda
