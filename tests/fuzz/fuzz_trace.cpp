#include "base/error.h"
#include "jobs/trace.h"
#include "memory_file.h"

/// Any file holds jobs, or is refused.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const dais::fuzz::MemoryFile file(data, size);
  try {
    dais::jobs::read_trace(file.path());
  } catch (const dais::Error& error) {
    if (error.code() == dais::Code::internal) std::abort();
  }
  return 0;
}
