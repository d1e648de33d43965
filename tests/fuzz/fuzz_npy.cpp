#include <cstdlib>

#include "base/error.h"
#include "ir/npy.h"

/// Any bytes are an array, or are refused; an array's elements can all be looked at.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const dais::Tensor tensor = dais::parse_npy({data, size}, "fuzz.npy");
    if (tensor.elements() > 0) (void)tensor.to_double(tensor.elements() - 1);
  } catch (const dais::Error& error) {
    if (error.code() == dais::Code::internal) std::abort();
  }
  return 0;
}
