// Any bytes either become a model or give one clear error, never one of our own bugs. A model that
// was read can be written and read again.
#include <cstdlib>

#include "onnx/exporter.h"

using dais::Code;
using dais::Error;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto model = dais::onnx::import_model(dais::Bytes{data, size});
    const auto bytes = dais::onnx::export_model(model);
    dais::onnx::import_model({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  } catch (const Error& error) {
    if (error.code() == Code::internal) std::abort();
  }
  return 0;
}
