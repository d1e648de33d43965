#pragma once

#include "backends/cpu/onednn_library.h"

#ifdef DAIS_ONEDNN

#include <cstdlib>

namespace dais::onednn {

struct FreeBytes {
  void operator()(void* bytes) const { std::free(bytes); }
};

/// Holds its own copy primitive, so that refilling allocates nothing.
struct Packed::Body {
  MemoryDesc desc;
  std::unique_ptr<void, FreeBytes> bytes;
  Memory memory, plain;
  Compiled reorder;
  Stream stream;

  Body(const MemoryDesc& plain_desc, const MemoryDesc& packed_desc);
  bool fill(const void* weights) noexcept;
};

/// The private format of packed weights.
const MemoryDesc& packed_desc(const Packed& packed);

}  // namespace dais::onednn

#endif
