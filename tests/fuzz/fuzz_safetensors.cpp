#include "base/error.h"
#include "memory_file.h"
#include "train/safetensors.h"

/// Any file holds tensors, or is refused.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const dais::fuzz::MemoryFile file(data, size);
  try {
    dais::train::read_safetensors(file.path());
  } catch (const dais::Error& error) {
    if (error.code() == dais::Code::internal) std::abort();
  }
  return 0;
}
