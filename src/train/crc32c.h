#pragma once

#include <cstdint>

#include "base/file.h"

namespace dais::train {

/// CRC-32C (Castagnoli) of bytes; `before` is the checksum of what stands in front of them.
uint32_t crc32c(Bytes bytes, uint32_t before = 0);

}  // namespace dais::train
